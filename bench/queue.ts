import type pg from 'pg'
import type { Postern } from './postern.ts'
import { makeSampleMessage, type SampleMessage } from './sample-message.ts'
import type { Sender } from './senders.ts'

const batch = 100
const requestsAtOnce = 4

/** Sends messages through the API, each to a different recipient. Returns the messages' ids. */
export async function queueMails(
  { url }: Postern,
  { secret, domain }: Sender,
  sampleMessage: SampleMessage,
  count: number,
): Promise<string[]> {
  const ids: string[] = []
  let next = 0
  const sendOn = async (): Promise<void> => {
    while (next < count) {
      const first = next
      next = Math.min(count, first + batch)
      const messages = Array.from({ length: next - first }, (_, place) => ({
        from: `Shop <shop@${domain}>`,
        to: [`ada${first + place}@example.net`],
        ...sampleMessage,
      }))
      const response = await fetch(`${url}/v1/messages/batch`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ messages }),
      })
      const { data } = (await response.json()) as { data: { id?: string }[] }
      for (const answer of data) {
        if (answer.id === undefined) throw new Error(`not accepted: ${JSON.stringify(answer)}`)
        ids.push(answer.id)
      }
    }
  }
  await Promise.all(Array.from({ length: requestsAtOnce }, sendOn))
  return ids
}

/** Sends one message and returns its id. */
export async function acceptOne(
  { url }: Postern,
  { secret, domain }: Sender,
  sampleMessage: object,
): Promise<string> {
  const response = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...sampleMessage, from: `Shop <shop@${domain}>`, to: ['ada@example.net'] }),
  })
  const answer = (await response.json()) as { id?: string }
  if (answer.id === undefined) throw new Error(`not accepted: ${JSON.stringify(answer)}`)
  return answer.id
}

/** Removes all messages and counters. */
export async function forgetMail({ superuser }: Postern): Promise<void> {
  await superuser.query(
    `truncate mail.messages, mail.recipients, mail.bodies, mail.dispatch, mail.attempts, mail.events, mail.usage,
              mail.daily_counters, mail.outbox, mail.suppressions`,
  )
  await superuser.query('vacuum analyze')
  await superuser.query('checkpoint')
}

/**
 * Inserts messages by SQL in the same form as the API, because this many requests would take too long. `none` is for
 * messages sent with a test key.
 */
export async function writeMails(
  client: pg.ClientBase,
  { projectId, identityId, apiKeyId, domain }: Sender,
  provider: 'service' | 'none',
  count: number,
): Promise<void> {
  const from = `shop@${domain}`
  const content = JSON.stringify({
    from: { name: null, address: from },
    to: [{ name: null, address: 'backlog@example.net' }],
    ...{ cc: [], reply_to: [], headers: [], attachments: [] },
    ...makeSampleMessage(1000),
  })
  await client.query(
    `with made as materialized (
       select postern.uuid7(postern.now()) as id, 'backlog' || no || '@example.net' as address
         from generate_series(1, $1::int) as no
     ), message as (
       insert into mail.messages (id, project_id, identity_id, api_key_id, is_test, from_address, subject,
                                  recipient_count, size_bytes)
       select id, $2, $3, $4, $7 = 'none', $5, 'Crowd', 1, 1000 from made
     ), body as (
       insert into mail.bodies (message_id, project_id, format, content)
       select id, $2, 'json', convert_to($6, 'UTF8') from made
     ), recipient as (
       insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
       select id, 0, $2, 'to', address, 'queued' from made
     )
     insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient)
     select id, 0, $2, $3, $7, address from made`,
    [count, projectId, identityId, apiKeyId, from, content, provider],
  )
}
