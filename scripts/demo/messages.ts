import type pg from 'pg'
import { noise, pick } from './noise.ts'

/**
 * Messages from the last few hours, with their events: a few dozen for each project that can send. Limited to the last
 * day, because the first partition is yesterday's.
 */
const hours = 22
const perSender = 40
const recipientsOfSpam = 25

/** The index, among the demo projects, of the project that sends to purchased addresses. */
export const abusive = 26

interface Sender {
  project: number
  index: number
  identity: number
  domain: string
}

interface Recipient {
  no: number
  address: string
  status: string
  reply: string | null
}

interface Message {
  project: number
  identity: number
  from: string
  subject: string
  tags: string[]
  secondsAgo: number
  recipients: Recipient[]
}

export async function makeMessages(database: pg.Client, projectIds: readonly number[]): Promise<void> {
  const { rows } = await database.query<{ project_id: string; identity_id: string; name: string }>(
    `select distinct on (domains.project_id) domains.project_id, identities.id as identity_id, domains.name
       from control.domains as domains
       join control.identities as identities
         on identities.domain_id = domains.id and identities.retiring_at is null
      where domains.status = 'verified' and domains.project_id = any($1::bigint[])
      order by domains.project_id, domains.id`,
    [projectIds],
  )
  const messages = rows.flatMap(({ project_id, identity_id, name }) => {
    const project = Number(project_id)
    const index = projectIds.indexOf(project)
    const sender = { project, index, identity: Number(identity_id), domain: name }
    return Array.from({ length: perSender }, (_, n) => messageOf(sender, n))
  })
  await insertMessages(database, messages)
}

const ordinary = [
  ['Your order has shipped', 'orders'],
  ['Confirm your address', 'sign-up'],
  ['Your invoice for this month', 'billing'],
  ['Reset your password', 'security'],
  ['What is new this week', 'newsletter'],
  ['Your appointment tomorrow', 'reminders'],
] as const
const spam = ['You have been selected', 'LAST CHANCE: claim your reward', 'Re: your payment'] as const
const people = ['ana', 'bo', 'chidi', 'dara', 'elif', 'farid', 'greta', 'hugo', 'ines', 'jun'] as const
const places = ['example.com', 'example.net', 'example.org'] as const

function messageOf({ project, index, identity, domain }: Sender, n: number): Message {
  const isSpam = index === abusive
  const [subject, tag] = isSpam ? [pick(spam, n), 'campaign-7'] : pick(ordinary, index + n)
  const count = isSpam ? recipientsOfSpam : 1 + (noise(index + n) > 0.9 ? 2 : 0)
  return {
    ...{ project, identity, subject },
    from: isSpam ? `Rewards <win@${domain}>` : `hello@${domain}`,
    tags: [tag],
    secondsAgo: 60 + Math.floor(hours * 3600 * ((n + noise(n + index)) / perSender)),
    recipients: Array.from({ length: count }, (_, no) => {
      const seed = (index * 97 + n) * 41 + no
      return { no, address: addressOf(seed, isSpam), ...outcomeOf(noise(seed), isSpam) }
    }),
  }
}

const addressOf = (seed: number, isBought: boolean): string =>
  `${pick(people, seed)}${isBought ? Math.floor(noise(seed) * 90_000) : `.${seed % 400}`}@${pick(places, seed)}`

function outcomeOf(at: number, isSpam: boolean): Pick<Recipient, 'status' | 'reply'> {
  const [bounced, complained] = isSpam ? [0.16, 0.03] : [0.015, 0.001]
  if (at < bounced) return { status: 'bounced', reply: '550 5.1.1 No such user here' }
  if (at < bounced + complained) return { status: 'complained', reply: 'abuse' }
  if (at < bounced + complained + 0.02) {
    return { status: 'deferred', reply: '451 4.7.1 Try again later: too many connections' }
  }
  return { status: 'delivered', reply: '250 2.0.0 Ok: queued' }
}

/** The events of a recipient in order, with the seconds since acceptance. */
const course: Record<string, [type: string, afterSeconds: number][]> = {
  delivered: [
    ['message.sent', 1],
    ['message.delivered', 3],
  ],
  deferred: [
    ['message.sent', 1],
    ['message.deferred', 20],
  ],
  bounced: [
    ['message.sent', 1],
    ['message.bounced', 4],
  ],
  complained: [
    ['message.sent', 1],
    ['message.delivered', 3],
    ['message.complained', 50],
  ],
}

interface DemoEvent {
  type: string
  no: number | null
  after: number
  data: object
}

const eventsOf = ({ recipients }: Message): DemoEvent[] => [
  { type: 'message.accepted', no: null, after: 0, data: { recipients: recipients.length } },
  ...recipients.flatMap(({ no, address, status, reply }) =>
    (course[status] ?? []).map(([type, after], step, steps) => {
      const diagnostic = step === steps.length - 1 ? reply : null
      const code = /\d\.\d\.\d/.exec(diagnostic ?? '')?.[0] ?? null
      return { type, no, after, data: { recipient: address, status: code, diagnostic } }
    }),
  ),
]

async function insertMessages(database: pg.Client, messages: readonly Message[]): Promise<void> {
  const given = messages.map((message, n) => ({ ...message, n, events: eventsOf(message) }))
  await database.query(
    `with given as materialized (
       select *, postern.now() - "secondsAgo" * interval '1 second' as at,
              postern.uuid7(postern.now() - "secondsAgo" * interval '1 second') as id
         from json_to_recordset($1) as given (project bigint, identity bigint, "from" text, subject text,
           tags json, "secondsAgo" int, recipients json, events json)
     ), message as (
       insert into mail.messages
         (id, project_id, identity_id, from_address, subject, tags, recipient_count, size_bytes, created_at)
       select id, project, identity, "from", subject, array(select json_array_elements_text(tags)),
              json_array_length(recipients), 2400, at from given
     ), recipient as (
       insert into mail.recipients
         (message_id, recipient_no, project_id, kind, address, status, reply, updated_at)
       select given.id, one.no, project, 'to', one.address, one.status, one.reply, at
         from given, json_to_recordset(recipients) as one (no smallint, address text, status text, reply text)
     )
     insert into mail.events (id, project_id, type, message_id, recipient_no, data, created_at)
     select postern.uuid7(at + after * interval '1 second'), project, one.type, given.id, one.no, one.data,
            at + after * interval '1 second'
       from given, json_to_recordset(events) as one (type text, no smallint, after int, data jsonb)`,
    [JSON.stringify(given)],
  )
}
