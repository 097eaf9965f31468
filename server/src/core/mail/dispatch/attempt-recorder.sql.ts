import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'
import { daysOf } from '../../../platform/ids.ts'
import type { RecipientStatus } from '../messages/wire.ts'
import type { ResultKey } from './results.sql.ts'

/** The result of one attempt, ready to be written. */
export interface Result {
  shard: number
  message_id: string
  recipient_no: number
  project_id: number
  recipient: string
  attempt: number
  provider: string
  host: string | null
  queueId: string | null
  outcome: 'sent' | 'deferred' | 'refused' | 'unreachable' | 'unknown'
  reply: string | null
  startedAt: Date
  /**
   * The delay until the next attempt or, if the outcome is unknown, until the message fails. Null if the
   * result is final.
   */
  retrySeconds: number | null
  /** The recipient's new status; null leaves it unchanged. */
  status: Extract<RecipientStatus, 'sent' | 'deferred' | 'bounced' | 'failed' | 'delivered'> | null
  /** RFC 3463 code, if the MTA returned one. */
  enhancedStatus: string | null
  /** Accepted with a test key. */
  isTest: boolean
}

/** An attempt that this worker still owns. Its dispatch row and its recipient are locked. */
interface Owned {
  index: number
  /** The ctid of the dispatch row. */
  dispatch: string
  status: RecipientStatus
}

/** A status that the intake has set in the meantime is not overwritten. */
const overwritable: readonly RecipientStatus[] = ['queued', 'scheduled', 'deferred']

/**
 * Records only attempts whose rows are still leased under the same attempt number. This fences off a worker that
 * has lost its lease. Rows in state `awaiting` are exempt, because no other worker can claim them.
 *
 * A message accepted by the provider always produces a result to publish. Any other outcome produces one only
 * if it changed the recipient's status.
 */
export async function recordRows(tx: Tx, results: readonly Result[]): Promise<ResultKey[]> {
  const owned = await lockOwned(tx, results)
  if (owned.length === 0) return []
  return writeOwned(
    tx,
    owned.map(({ index, dispatch, status: before }): OwnedResult => {
      const result = results[index] as Result
      const hasChanged = result.status !== null && result.status !== before && overwritable.includes(before)
      return { ...result, dispatchCtid: dispatch, hasChanged }
    }),
  )
}

/** Locks rows by key, in the same order as concurrent transactions: dispatch first, then recipients. */
async function lockOwned(tx: Tx, results: readonly Result[]): Promise<Owned[]> {
  const each = <T>(value: (result: Result) => T): T[] => results.map(value)
  const days = daysOf(each(({ message_id }) => message_id))
  const { rows } = await sql<Owned>`
    with owned as materialized (
      select result.*, dispatch.row_ctid
        from (select * from unnest(
                ${each(({ shard }) => shard)}::smallint[], ${each(({ message_id }) => message_id)}::uuid[],
                ${each(({ recipient_no }) => recipient_no)}::smallint[], ${each(({ attempt }) => attempt)}::integer[])
                with ordinality as result (shard, message_id, recipient_no, attempt, no)
               order by shard, message_id, recipient_no) as result
        cross join lateral (
          select ctid as row_ctid from mail.dispatch
           where shard = result.shard and message_id = result.message_id and recipient_no = result.recipient_no
             and attempt = result.attempt and state in ('leased', 'awaiting')
           limit 1 for update) as dispatch
    )
    select (owned.no - 1)::int as index, owned.row_ctid::text as dispatch, recipient.status
      from owned
      cross join lateral (
        select status from mail.recipients
         where shard = owned.shard and message_id = owned.message_id and recipient_no = owned.recipient_no
           and message_id between ${days.first}::uuid and ${days.last}::uuid
         limit 1 for no key update) as recipient`.execute(tx)
  return rows
}

interface OwnedResult extends Result {
  /** The ctid of the locked row in mail.dispatch. */
  dispatchCtid: string
  /** The recipient's status changes. */
  hasChanged: boolean
}

/**
 * The dispatch rows are locked, so their ctids are still valid.
 *
 * The recipients are updated by `insert … on conflict`, which finds each row by its key. The planner has no other choice. For
 * an `update` it would join the results with the day's partition, and as long as PostgreSQL has no statistics for a new day, it
 * would read the whole partition for each result.
 */
async function writeOwned(tx: Tx, results: readonly OwnedResult[]): Promise<ResultKey[]> {
  const each = <T>(value: (result: OwnedResult) => T): T[] => results.map(value)
  const changed = results.filter(({ hasChanged }) => hasChanged)
  const ofChanged = <T>(value: (result: OwnedResult) => T): T[] => changed.map(value)
  const days = daysOf(each(({ message_id }) => message_id))
  const final = results.filter(({ retrySeconds }) => retrySeconds === null)
  const retried = results.filter(({ retrySeconds }) => retrySeconds !== null)
  const published = results.filter(({ outcome, hasChanged }) => outcome === 'sent' || hasChanged)
  const ofPublished = <T>(value: (result: OwnedResult) => T): T[] => published.map(value)
  const { rows } = await sql<ResultKey>`
    with deleted as (
      delete from mail.dispatch where ctid = any(${final.map(({ dispatchCtid }) => dispatchCtid)}::tid[])
    ), rescheduled as (
      update mail.dispatch as dispatch
         set state = retry.state, leased_until = null,
             due_at = postern.now() + interval '1 second' * retry.seconds
        from unnest(${retried.map(({ dispatchCtid }) => dispatchCtid)}::tid[],
                    ${retried.map(({ outcome }) => (outcome === 'unknown' ? 'awaiting' : 'deferred'))}::text[],
                    ${retried.map(({ retrySeconds }) => retrySeconds)}::float8[]) as retry (row_ctid, state, seconds)
       where dispatch.ctid = retry.row_ctid
    ), recorded as (
      insert into mail.attempts (message_id, recipient_no, attempt, project_id, provider, host, queue_id, outcome, reply,
                                 started_at, finished_at)
      select message_id, recipient_no, attempt, project_id, provider, host, queue_id, outcome, reply, started_at,
             postern.now()
        from unnest(
          ${each(({ message_id }) => message_id)}::uuid[], ${each(({ recipient_no }) => recipient_no)}::smallint[],
          ${each(({ attempt }) => attempt)}::integer[], ${each(({ project_id }) => project_id)}::bigint[],
          ${each(({ provider }) => provider)}::text[], ${each(({ host }) => host)}::text[],
          ${each(({ queueId }) => queueId)}::text[], ${each(({ outcome }) => outcome)}::text[],
          ${each(({ reply }) => reply)}::text[], ${each(({ startedAt }) => startedAt)}::timestamptz[])
          as result (message_id, recipient_no, attempt, project_id, provider, host, queue_id, outcome, reply, started_at)
      -- The row already exists if the attempt was recorded before the call (attempt-starter.sql.ts), or if the
      -- transaction is retried after a commit with an unknown outcome.
      on conflict (shard, message_id, recipient_no, attempt) do update
         set host = excluded.host, queue_id = excluded.queue_id, outcome = excluded.outcome, reply = excluded.reply,
             finished_at = excluded.finished_at
       where attempts.outcome = 'begun'
    ), changed as (
      insert into mail.recipients as recipients (message_id, recipient_no, project_id, kind, address, status, reply,
                                                 updated_at)
      select recipient.message_id, recipient.recipient_no, recipient.project_id, recipient.kind, recipient.address,
             change.status, change.reply, postern.now()
        from unnest(${ofChanged(({ shard }) => shard)}::smallint[],
                    ${ofChanged(({ message_id }) => message_id)}::uuid[],
                    ${ofChanged(({ recipient_no }) => recipient_no)}::smallint[],
                    ${ofChanged(({ status }) => status)}::text[], ${ofChanged(({ reply }) => reply)}::text[])
               as change (shard, message_id, recipient_no, status, reply)
       cross join lateral (
         select * from mail.recipients
          where shard = change.shard and message_id = change.message_id and recipient_no = change.recipient_no
            and message_id between ${days.first}::uuid and ${days.last}::uuid
          limit 1) as recipient
      on conflict (shard, message_id, recipient_no) do update
         set status = excluded.status, reply = excluded.reply, updated_at = excluded.updated_at
    )
    insert into mail.attempt_results (message_id, recipient_no, attempt, project_id, type, is_test, recipient, status,
                                      diagnostic)
    select * from unnest(
      ${ofPublished(({ message_id }) => message_id)}::uuid[],
      ${ofPublished(({ recipient_no }) => recipient_no)}::smallint[],
      ${ofPublished(({ attempt }) => attempt)}::integer[], ${ofPublished(({ project_id }) => project_id)}::bigint[],
      ${ofPublished(({ outcome, status }) => (outcome === 'sent' ? 'sent' : status))}::text[],
      ${ofPublished(({ isTest }) => isTest)}::boolean[], ${ofPublished(({ recipient }) => recipient)}::text[],
      ${ofPublished(({ enhancedStatus }) => enhancedStatus)}::text[], ${ofPublished(({ reply }) => reply)}::text[])
    returning shard, message_id, recipient_no, attempt, type`.execute(tx)
  return rows
}
