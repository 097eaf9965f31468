import assert from 'node:assert/strict'
import {
  type Authentication,
  authenticationOf,
} from '../server/src/testing/expectations/mail-authentication.ts'
import { eventually } from '../server/src/testing/harness/waiting.ts'
import type { DnsRecord } from '../server/src/testing/peers/dns.ts'
import type { Delivery } from '../server/src/testing/peers/sink.ts'
import { type Answer, Caller } from './caller.ts'
import { openParts, type PartOptions, type Parts } from './parts.ts'

/**
 * The starting point of a scenario: the parts, an administrator, and a shop's project. The project has a plan, an API
 * key and the verified domain shop.example.org, whose DNS records are those returned by the API.
 */
export interface Stage extends Parts, Cast {
  /** Sends a message, which must be accepted, and returns its id. */
  send(mail: Partial<Mail>): Promise<string>
  message(id: string): Promise<Message>
  events(id: string): Promise<MessageEvent[]>
  /** Waits until every recipient has this status, and returns the message. */
  settled(id: string, status: string): Promise<Message>
  /** The message's deliveries, as received by the sink. */
  received(id: string): Delivery[]
  /** The authentication results that a receiver would compute. */
  authentication(delivery: Delivery): Promise<Authentication>
  /** Publishes the records returned by the API, and waits until the domain is verified. */
  verify(domain: Domain): Promise<Domain>
  /** On failure, the error includes the parts' logs. */
  eventually: typeof eventually
}

interface Cast {
  admin: Caller
  /** The shop's API client, and its key. */
  shop: Caller
  secret: string
  project: { id: number; plan_id: number }
  domain: Domain
}

export interface Domain {
  id: number
  name: string
  status: string
  identity: { id: number; state: string; selector: string }
  dns_records: DnsRecord[]
}

export interface Mail {
  from: string
  to: string[]
  cc: string[]
  bcc: string[]
  subject: string
  text: string
  html: string
  attachments: { filename: string; content_type: string; content: string }[]
}

export interface Message {
  id: string
  status: string
  recipients: { address: string; kind: string; status: string; diagnostic: string | null }[]
}

export interface MessageEvent {
  type: string
  recipient: string
  data: Record<string, unknown>
  created_at: string
}

export interface StageOptions extends PartOptions {
  plan?: Partial<typeof plan>
}

const plan = {
  name: 'Shop',
  description: 'For scenarios.',
  support_level: 'email',
  max_domains: 10,
  max_users: 10,
  max_mails_per_day: 10_000,
  max_mails_per_month: 100_000,
  billing_product_id: null,
  price: 10,
  is_active: true,
}

export const scopes = ['messages:send', 'messages:read', 'suppressions:read', 'domains:write', 'usage:read']

export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const parts = await openParts(options)
  const cast = await enter(parts, options)
  const { shop, admin, project } = cast
  const { dns, sink } = parts
  const message = (id: string) => body<Message>(200, shop.get(`/messages/${id}`))
  const eventuallyHere: typeof eventually = (...args) =>
    eventually(...args).catch(async (error: Error) => {
      throw new Error(`${error.message}\n${await troubles(parts)}`)
    })
  return {
    ...parts,
    ...cast,
    message,
    eventually: eventuallyHere,
    verify: (domain) => verify(parts, admin, project.id, domain),
    async send(mail) {
      const whole = {
        from: 'Shop <orders@shop.example.org>',
        subject: 'Your order',
        text: 'It is on its way.',
      }
      return (await body<{ id: string }>(202, shop.post('/messages', { ...whole, ...mail }))).id
    },
    events: async (id) =>
      (await body<{ data: MessageEvent[] }>(200, shop.get(`/messages/${id}/events`))).data,
    settled: (id, status) =>
      eventuallyHere(`message ${id} is ${status}`, async () => {
        const seen = await message(id)
        if (seen.recipients.some((recipient) => recipient.status !== status)) return false
        // Events and counters are written afterwards.
        const unpublished = await parts.database.query(
          'select from mail.attempt_results where message_id = $1',
          [id],
        )
        return unpublished.length === 0 && seen
      }),
    received: (id) => sink.received.filter(({ raw }) => messageIdOf(raw).startsWith(`<${id}@`)),
    authentication: (delivery) => authenticationOf(delivery, dns.server),
  }
}

/** Sets everything up as an operator and an administrator would, using commands and the API. */
async function enter(parts: Parts, options: StageOptions): Promise<Cast> {
  const email = 'ada@postern.example.net'
  await parts.postern('admin', 'create', '--email', email)
  const admin = new Caller(parts.apiUrl, (await parts.postern('token', '--email', email)).trim())
  const users = await body<{ data: { id: number }[] }>(200, admin.get('/admin/users'))
  const { id: plan_id } = await makePlan(admin, options.plan)
  const { id } = await body<{ id: number }>(
    201,
    admin.post('/admin/projects', { name: 'Shop', user_id: users.data[0]?.id, plan_id }),
  )
  await body(
    200,
    admin.patch(`/admin/projects/${id}`, { allow_service_mta: true, reason: 'A customer since 2019' }),
  )
  const { secret } = await body<{ secret: string }>(
    201,
    admin.post(`/admin/projects/${id}/api-keys`, {
      mode: 'live',
      name: 'Web shop',
      scopes,
      domain_id: null,
      allowed_ips: [],
      expires_at: null,
      is_active: true,
    }),
  )
  const made = await body<Domain>(
    201,
    admin.post(`/admin/projects/${id}/domains`, { name: 'shop.example.org', mta_provider: 'service' }),
  )
  const domain = await verify(parts, admin, id, made)
  return { admin, shop: new Caller(parts.apiUrl, secret), secret, project: { id, plan_id }, domain }
}

export const makePlan = (admin: Caller, changes: Partial<typeof plan> = {}): Promise<{ id: number }> =>
  body(201, admin.post('/admin/plans', { ...plan, ...changes }))

/** Publishes the domain's records and verifies it. */
export async function verify(
  { dns }: Pick<Parts, 'dns'>,
  admin: Caller,
  projectId: number,
  domain: Domain,
): Promise<Domain> {
  await dns.publish(domain.dns_records)
  const path = `/admin/projects/${projectId}/domains/${domain.id}`
  const seen = (isSo: (domain: Domain) => boolean, what: string) =>
    eventually(`${domain.name} is ${what}`, async () => {
      const now = await body<Domain>(200, admin.get(path))
      return isSo(now) && now
    })
  await seen(({ identity }) => identity.state === 'registered', 'registered')
  await body(200, admin.post(`${path}/verify`, { reason: 'The records are there' }))
  return seen(({ status }) => status === 'verified', 'verified')
}

/**
 * The confirmation link emailed to a forward's target, rewritten to the API's address. The scenario must set
 * POSTERN_SYSTEM_MAIL_FROM.
 */
export async function confirmationLink(
  { sink, apiUrl }: Pick<Parts, 'sink' | 'apiUrl'>,
  target: string,
): Promise<URL> {
  const isLink = /\/v1\/forwards\/fwd_[\w-]{43}/
  const textOf = ({ raw }: Delivery) => raw.toString().replaceAll('=\r\n', '')
  const mail = await sink.next((delivery) => delivery.to[0] === target && isLink.test(textOf(delivery)))
  return new URL(isLink.exec(textOf(mail))?.[0] ?? '', apiUrl)
}

/** Returns the body of a response that must have this status. */
export async function body<Body>(status: number, request: Promise<Answer>): Promise<Body> {
  const answer = await request
  assert.equal(answer.status, status, JSON.stringify(answer.body))
  return answer.body
}

/** The warnings and errors that the parts have logged. */
async function troubles({ processes, postfix }: Parts): Promise<string> {
  const logged = Object.entries(processes).flatMap(([name, { lines }]) =>
    lines.filter((line) => /"level":"(warn|error|fatal)"/.test(line)).map((line) => `${name}: ${line}`),
  )
  return [...logged, ...(await postfix.log()).trimEnd().split('\n').slice(-20)].join('\n')
}

/** The Message-ID header field, including the angle brackets. */
export const messageIdOf = (raw: Buffer): string =>
  /^Message-ID:\s*(<[^>]+>)/im.exec(raw.toString('latin1'))?.[1] ?? ''
