import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'
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

/**
 * Updates only rows that are still leased under the same attempt number. This fences off a worker that has
 * lost its lease. Rows in state `awaiting` are exempt, because no other worker can claim them. A status that
 * the intake has set in the meantime is not overwritten.
 *
 * A message accepted by the provider always produces a result to publish. Any other outcome produces one only
 * if it changed the recipient's status.
 */
export async function recordRows(tx: Tx, results: readonly Result[]): Promise<ResultKey[]> {
  const each = <T>(value: (result: Result) => T): T[] => results.map(value)
  const { rows } = await sql<ResultKey>`
    with result as materialized (
      select * from unnest(
        ${each(({ shard }) => shard)}::smallint[], ${each(({ message_id }) => message_id)}::uuid[],
        ${each(({ recipient_no }) => recipient_no)}::smallint[], ${each(({ project_id }) => project_id)}::bigint[],
        ${each(({ recipient }) => recipient)}::text[], ${each(({ enhancedStatus }) => enhancedStatus)}::text[],
        ${each(({ isTest }) => isTest)}::boolean[],
        ${each(({ attempt }) => attempt)}::integer[], ${each(({ provider }) => provider)}::text[],
        ${each(({ host }) => host)}::text[], ${each(({ queueId }) => queueId)}::text[],
        ${each(({ outcome }) => outcome)}::text[], ${each(({ reply }) => reply)}::text[],
        ${each(({ startedAt }) => startedAt)}::timestamptz[],
        ${each(({ retrySeconds }) => retrySeconds)}::float8[], ${each(({ status }) => status)}::text[])
        as result (shard, message_id, recipient_no, project_id, recipient, enhanced_status, is_test, attempt, provider,
                   host, queue_id, outcome, reply, started_at, retry_seconds, status)
    ), owned as materialized (
      select dispatch.ctid, result.* from result
        cross join lateral (
          select dispatch.ctid from mail.dispatch as dispatch
           where dispatch.shard = result.shard and dispatch.message_id = result.message_id
             and dispatch.recipient_no = result.recipient_no
             and dispatch.attempt = result.attempt and dispatch.state in ('leased', 'awaiting')
             for update) as dispatch
    ), deleted as (
      delete from mail.dispatch where ctid = any(array(select ctid from owned where retry_seconds is null))
    ), rescheduled as (
      update mail.dispatch as dispatch
         set state = case (select outcome from owned where owned.ctid = dispatch.ctid)
                       when 'unknown' then 'awaiting' else 'deferred' end,
             leased_until = null,
             due_at = postern.now() + interval '1 second' *
                        (select retry_seconds from owned where owned.ctid = dispatch.ctid)
       where ctid = any(array(select ctid from owned where retry_seconds is not null))
    ), recorded as (
      insert into mail.attempts (message_id, recipient_no, attempt, project_id, provider, host, queue_id, outcome, reply,
                                 started_at, finished_at)
      select message_id, recipient_no, attempt, project_id, provider, host, queue_id, outcome, reply, started_at,
             postern.now()
        from owned
      -- The row already exists if the attempt was recorded before the call (attempt-starter.sql.ts), or if the
      -- transaction is retried after a commit with an unknown outcome.
      on conflict (shard, message_id, recipient_no, attempt) do update
         set host = excluded.host, queue_id = excluded.queue_id, outcome = excluded.outcome, reply = excluded.reply,
             finished_at = excluded.finished_at
       where attempts.outcome = 'begun'
    ), changed as (
      update mail.recipients as recipients
         set status = owned.status, reply = owned.reply, updated_at = postern.now()
        from owned
       where recipients.shard = owned.shard and recipients.message_id = owned.message_id
         and recipients.recipient_no = owned.recipient_no and owned.status is not null
         and recipients.status in ('queued', 'scheduled', 'deferred') and recipients.status <> owned.status
      returning recipients.message_id, recipients.recipient_no
    )
    insert into mail.attempt_results (message_id, recipient_no, attempt, project_id, type, is_test, recipient, status,
                                      diagnostic)
    select owned.message_id, owned.recipient_no, owned.attempt, owned.project_id,
           case owned.outcome when 'sent' then 'sent' else owned.status end, owned.is_test, owned.recipient,
           owned.enhanced_status, owned.reply
      from owned left join changed using (message_id, recipient_no)
     where owned.outcome = 'sent' or changed.message_id is not null
    returning shard, message_id, recipient_no, attempt, type`.execute(tx)
  return rows
}
