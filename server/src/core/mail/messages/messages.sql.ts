import { type RawBuilder, sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { maySend } from '../../control/projects/may-send.ts'
import { allOf, boundedScan } from '../../shared/bounded-scan.ts'
import type { RecipientStatus } from './wire.ts'

export interface RecipientRow {
  address: string
  kind: 'to' | 'cc' | 'bcc'
  status: Exclude<RecipientStatus, 'held'>
  reply: string | null
  updated_at: string
}

export interface MessageRow {
  id: string
  project_id: number
  from_address: string
  subject: string
  tags: string[]
  metadata: Record<string, string>
  size_bytes: number
  is_test: boolean
  api_key_id: number | null
  user_id: number | null
  send_at: Date | null
  created_at: Date
  recipients: RecipientRow[]
}

const columns = sql`
  messages.id, messages.project_id, messages.from_address, messages.subject, messages.tags, messages.metadata,
  messages.size_bytes, messages.is_test, messages.api_key_id, messages.user_id, messages.send_at, messages.created_at,
  (select json_agg(json_build_object('address', address, 'kind', kind, 'status', status, 'reply', reply,
                                     'updated_at', updated_at) order by recipient_no)
     from mail.recipients where shard = messages.shard and message_id = messages.id) as recipients`

const ofProject = (projectId: number) =>
  sql<boolean>`messages.shard = postern.shard_of(${projectId}) and messages.project_id = ${projectId}`

/** With `domainId`, finds the message only if it was accepted for one of that domain's identities. */
export async function findById(
  tx: ReadTx,
  projectId: number,
  id: string,
  domainId: number | null,
): Promise<MessageRow | undefined> {
  const ofDomain =
    domainId === null
      ? sql`true`
      : sql`exists (select from control.identities as identities
                     where identities.id = messages.identity_id and identities.project_id = ${projectId}
                       and identities.domain_id = ${domainId})`
  const { rows } = await sql<MessageRow>`
    select ${columns} from mail.messages as messages
     where ${ofProject(projectId)} and messages.id = ${id} and ${ofDomain}`.execute(tx)
  return rows[0]
}

/**
 * All identities that a domain has had (each edit creates one). Each of the domain's messages was accepted
 * for one of them.
 */
export async function identitiesOf(tx: ReadTx, projectId: number, domainId: number): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select id from control.identities where project_id = ${projectId} and domain_id = ${domainId}`.execute(tx)
  return rows.map(({ id }) => id)
}

export interface MessageFilter {
  recipient?: string | undefined
  /** As stored: `held` means `queued` in a project that cannot send. */
  status?: Exclude<RecipientStatus, 'held'> | undefined
  tag?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
}

/** `identityIds`: the identities of the domain that the caller is bound to. */
type Narrowing = MessageFilter & { identityIds?: readonly number[] | undefined }

/** Messages scanned for one page; see core/shared/bounded-scan.ts. */
const scanLimit = 2_000

/** A range of an index whose rows lead to messages. */
export interface MessageRange {
  from: RawBuilder<unknown>
  within: RawBuilder<boolean>
  shard: RawBuilder<unknown>
  id: RawBuilder<unknown>
}

export interface ScannedMessages {
  rows: MessageRow[]
  /**
   * The position where the next page starts. If this page reached the scan limit, that is the position where its scan
   * stopped.
   */
  next: string | null
}

/** Newest first. */
export function listByProject(
  tx: ReadTx,
  projectId: number,
  { recipient, status, tag, from, to, identityIds }: Narrowing,
  { limit, beforeId }: { limit: number; beforeId?: string | undefined },
): Promise<ScannedMessages> {
  const period = { from, to, beforeId }
  const range: MessageRange =
    recipient === undefined
      ? ofMessages(sql<boolean>`${ofProject(projectId)} and ${idsIn(sql`messages.id`, period)}`)
      : ofRecipients(sql<boolean>`named.shard = postern.shard_of(${projectId}) and named.project_id = ${projectId}
            and lower(named.address) = lower(${recipient}) and ${idsIn(sql`named.message_id`, period)}`)
  return scanMessages(tx, range, passing(range, { status, tag, identityIds }), { limit })
}

/** Ids contain the time since 1970. */
export const idsIn = (
  id: RawBuilder<unknown>,
  { from, to, beforeId }: Pick<MessageFilter, 'from' | 'to'> & { beforeId?: string | undefined },
): RawBuilder<boolean> =>
  allOf([
    sql<boolean>`${id} < ${beforeId ?? 'ffffffff-ffff-ffff-ffff-ffffffffffff'}::uuid`,
    ...(from === undefined ? [] : [sql<boolean>`${id} >= postern.uuid7_floor(${since1970(from)})`]),
    ...(to === undefined ? [] : [sql<boolean>`${id} < postern.uuid7_floor(${since1970(to)})`]),
  ])

const since1970 = (time: Date): Date => new Date(Math.max(0, time.getTime()))

export const ofMessages = (within: RawBuilder<boolean>): MessageRange => ({
  ...{ from: sql`mail.messages as messages`, within },
  ...{ shard: sql`messages.shard`, id: sql`messages.id` },
})

export const ofRecipients = (within: RawBuilder<boolean>): MessageRange => ({
  ...{ from: sql`mail.recipients as named`, within },
  ...{ shard: sql`named.shard`, id: sql`named.message_id` },
})

export async function scanMessages(
  tx: ReadTx,
  { from, within, shard, id }: MessageRange,
  passes: RawBuilder<boolean>,
  { limit, bound = scanLimit }: { limit: number; bound?: number },
): Promise<ScannedMessages> {
  const found = boundedScan({
    ...{ columns: sql`${shard} as shard, ${id} as id`, from, within, order: sql`${id} desc` },
    ...{ passes, bound, limit },
  })
  const { rows } = await sql<MessageRow & { stop: string | null }>`
    with ${found}
    select messages.*, null as stop from found
     -- The limit forces a separate index lookup for each key: with a join, PostgreSQL may read all of the
     -- project's mail for one page.
     cross join lateral (
       select ${columns} from mail.messages as messages
        where messages.shard = found.shard and messages.id = found.id limit 1) as messages
    union all
    select stop.id, 0, '', '', '{}', '{}', 0, false, null, null, null, postern.now(), null, stop.id::text from stop
    order by 1 desc`.execute(tx)
  const messages = rows.filter(({ stop }) => stop === null)
  const shown = messages.slice(0, limit)
  const stop = rows.find((row) => row.stop !== null)?.stop ?? null
  return { rows: shown, next: messages.length > limit ? (shown.at(-1)?.id ?? null) : stop }
}

/**
 * One index lookup per scanned message. With a join or an `exists`, PostgreSQL may read all projects' mail
 * into a hash table.
 */
export const passing = (
  { shard, id }: Pick<MessageRange, 'shard' | 'id'>,
  { status, tag, identityIds }: Narrowing,
): RawBuilder<boolean> =>
  allOf([
    ...(status === undefined
      ? []
      : [
          sql<boolean>`coalesce((select true from mail.recipients as own
             where own.shard = ${shard} and own.message_id = ${id} and own.status = ${status} limit 1), false)`,
        ]),
    ...(tag === undefined
      ? []
      : [
          sql<boolean>`coalesce((select ${tag} = any(own.tags) from mail.messages as own
             where own.shard = ${shard} and own.id = ${id}), false)`,
        ]),
    ...(identityIds === undefined
      ? []
      : [
          sql<boolean>`coalesce((select own.identity_id = any(${identityIds}::bigint[]) from mail.messages as own
             where own.shard = ${shard} and own.id = ${id}), false)`,
        ]),
  ])

export interface EventRow {
  id: string
  type: string
  recipient: string | null
  data: Record<string, unknown>
  created_at: Date
}

export const maxEvents = 1000

/** A message's events, in chronological order. Each recipient has only a few. */
export async function listEvents(tx: ReadTx, projectId: number, messageId: string): Promise<EventRow[]> {
  const { rows } = await sql<EventRow>`
    select events.id, events.type, recipients.address as recipient, events.data, events.created_at
      from mail.events as events
      left join mail.recipients as recipients
        on recipients.shard = events.shard and recipients.message_id = events.message_id
       and recipients.recipient_no = events.recipient_no
     where events.shard = postern.shard_of(${projectId}) and events.project_id = ${projectId}
       and events.message_id = ${messageId}
       -- An event is never older than its message, so earlier partitions are pruned.
       and events.id >= postern.uuid7_floor(to_timestamp(
             ('x' || translate(left(${messageId}::text, 13), '-', ''))::bit(48)::bigint / 1000.0))
     -- Events from one transaction have the same timestamp: the message's own events precede those of its
     -- recipients.
     order by events.created_at, events.recipient_no nulls first, events.id limit ${maxEvents}`.execute(tx)
  return rows
}

export interface AttemptRow {
  recipient: string
  attempt: number
  provider: string
  host: string | null
  queue_id: string | null
  outcome: string
  reply: string | null
  started_at: Date
  finished_at: Date | null
}

/** Attempts to hand over a message, by recipient. */
export async function listAttempts(
  tx: ReadTx,
  projectId: number,
  messageId: string,
  limit: number,
): Promise<AttemptRow[]> {
  const { rows } = await sql<AttemptRow>`
    select recipients.address as recipient, attempts.attempt, attempts.provider, attempts.host, attempts.queue_id,
           attempts.outcome, attempts.reply, attempts.started_at, attempts.finished_at
      from mail.attempts as attempts
      join mail.recipients as recipients
        on recipients.shard = attempts.shard and recipients.message_id = attempts.message_id
       and recipients.recipient_no = attempts.recipient_no
     where attempts.shard = postern.shard_of(${projectId}) and attempts.project_id = ${projectId}
       and attempts.message_id = ${messageId}
     order by attempts.recipient_no, attempts.attempt limit ${limit}`.execute(tx)
  return rows
}

/** The first of these messages that the project does not have. */
export async function findAbsent(
  tx: ReadTx,
  projectId: number,
  ids: readonly string[],
): Promise<string | undefined> {
  const { rows } = await sql<{ id: string }>`
    select wanted.id from unnest(${ids}::uuid[]) with ordinality as wanted (id, no)
     where not exists (select from mail.messages as messages
                        where ${ofProject(projectId)} and messages.id = wanted.id)
     order by wanted.no limit 1`.execute(tx)
  return rows[0]?.id
}

/** Whether the project currently cannot send. */
export async function isSendingBlocked(tx: ReadTx, projectId: number): Promise<boolean> {
  const { rows } = await sql<{ is_closed: boolean }>`
    select not ${maySend} as is_closed from control.projects as projects where id = ${projectId}`.execute(tx)
  return rows[0]?.is_closed ?? true
}

/** Cancels the recipients that are still scheduled. Returns the number canceled. */
export async function cancelScheduled(tx: Tx, projectId: number, messageId: string): Promise<number> {
  const { rows } = await sql`
    with gone as (
      delete from mail.dispatch
       where shard = postern.shard_of(${projectId}) and message_id = ${messageId} and project_id = ${projectId}
         and state = 'scheduled'
      returning shard, message_id, recipient_no
    )
    update mail.recipients as recipients set status = 'canceled', updated_at = postern.now()
      from gone
     where recipients.shard = gone.shard and recipients.message_id = gone.message_id
       and recipients.recipient_no = gone.recipient_no
    returning true`.execute(tx)
  return rows.length
}
