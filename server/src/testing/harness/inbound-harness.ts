import assert from 'node:assert/strict'
import { inboundDeps } from '../../context/context.ts'
import { type InboundDeps, startInbound } from '../../intake/inbound/inbound.ts'
import { assertDocumented } from '../expectations/documented-events.ts'
import { makeCertificate } from '../peers/certificate.ts'
import { SmtpClient } from '../peers/smtp-client.ts'
import type { TestApi } from './api.ts'
import { cleanUp } from './cleanup.ts'
import type { TestDatabase } from './database.ts'
import { fanOutAll } from './fan-out.ts'

/** The MX listener, an SMTP client for it, and the rows it has written. */
export async function openInbound(api: TestApi, database: TestDatabase, changes: Partial<InboundDeps> = {}) {
  const listener = await startInbound({
    ...inboundDeps(api.context, makeCertificate()),
    port: 0,
    ...changes,
  })
  cleanUp(() => listener.stop(1000))

  /** Returns a client that has sent EHLO. */
  async function open(helo = 'client.example'): Promise<SmtpClient> {
    const client = await SmtpClient.open(listener.port)
    cleanUp(async () => client.close())
    await client.say(`EHLO ${helo}`)
    return client
  }

  const inboundOf = (projectId: number) =>
    database.query<InboundRow>(
      `select id, recipient, action, route_id::int, endpoint_id::int, message_id, envelope_from, from_header, subject,
              size_bytes, authentication, host(remote_address) as remote_address, body_id
         from mail.inbound where project_id = $1 order by recipient`,
      [projectId],
    )

  const eventsOf = async (projectId: number) => {
    await fanOutAll(api.context.cells.all[0].mail, database)
    const rows = await database.query<InboundEvent>(
      `select id, type,
              data || coalesce((select convert_from(event_data, 'UTF8')::jsonb from mail.inbound_bodies as bodies
                                 where bodies.id = events.inbound_body_id), '{}') as data,
              array(select endpoint_id::int from mail.deliveries where event_id = events.id order by 1) as endpoints
         from mail.events as events where project_id = $1 and type = 'inbound.received' order by id`,
      [projectId],
    )
    for (const { type, data } of rows)
      assertDocumented({
        type,
        timestamp: '2026-11-14T09:30:00.000Z',
        data: { ...data, project_id: projectId },
      })
    return rows
  }

  return { listener, open, inboundOf, eventsOf }
}

interface InboundEvent {
  id: string
  type: string
  data: Record<string, unknown>
  endpoints: number[]
}

export interface InboundRow {
  id: string
  recipient: string
  action: string
  route_id: number
  endpoint_id: number | null
  message_id: string | null
  envelope_from: string
  from_header: string
  subject: string
  size_bytes: number
  authentication: Record<string, unknown>
  remote_address: string
  body_id: string | null
}

/** The reply to RCPT for each address, in an SMTP transaction that is then reset. */
export async function rcptReplies(client: SmtpClient, addresses: readonly string[]): Promise<string[]> {
  assert.match((await client.say('MAIL FROM:<ada@example.com>')) ?? '', /^250/)
  const replies: string[] = []
  for (const address of addresses) replies.push((await client.say(`RCPT TO:<${address}>`)) ?? 'gone')
  assert.match((await client.say('RSET')) ?? '', /^250/)
  return replies
}

export const someMail = (changes: { fields?: string[]; body?: string } = {}): string =>
  [
    'From: Ada <ada@example.com>',
    'To: support@shop.example',
    'Subject: Where is my order?',
    ...(changes.fields ?? []),
    '',
    changes.body ?? 'It should have arrived on Monday.',
  ].join('\r\n')
