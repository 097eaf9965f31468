import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'
import type { RecipientStatus } from '../messages/wire.ts'
import type { ResultKey } from './results.sql.ts'

/** What became of an attempt, as it is written down. */
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
  /** Null: there is nothing more to do. Otherwise, when it is tried again or, if nobody knows, given up. */
  retrySeconds: number | null
  /** What the recipient becomes; null: what it is. */
  status: Extract<RecipientStatus, 'sent' | 'deferred' | 'bounced' | 'failed' | 'delivered'> | null
  /** RFC 3463, where the MTA gave one. */
  enhancedStatus: string | null
  /** Of a test key. */
  isTest: boolean
}

/**
 * Only what is still leased under the attempt that it was given for: whoever lost the lease has nothing to say any
 * more, unless nobody else may try it, and it awaits just this word. A word that the intake has heard meanwhile is not
 * taken back.
 *
 * A hand-over always leaves a result to publish; anything else does if it changed the recipient's status.
 */
export async function finishRows(tx: Tx, results: readonly Result[]): Promise<ResultKey[]> {
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
    ), held as materialized (
      select dispatch.ctid, result.* from result
        cross join lateral (
          select dispatch.ctid from mail.dispatch as dispatch
           where dispatch.shard = result.shard and dispatch.message_id = result.message_id
             and dispatch.recipient_no = result.recipient_no
             and dispatch.attempt = result.attempt and dispatch.state in ('leased', 'awaiting')
             for update) as dispatch
    ), gone as (
      delete from mail.dispatch where ctid = any(array(select ctid from held where retry_seconds is null))
    ), again as (
      update mail.dispatch as dispatch
         set state = case (select outcome from held where held.ctid = dispatch.ctid)
                       when 'unknown' then 'awaiting' else 'deferred' end,
             leased_until = null,
             due_at = postern.now() + interval '1 second' *
                        (select retry_seconds from held where held.ctid = dispatch.ctid)
       where ctid = any(array(select ctid from held where retry_seconds is not null))
    ), noted as (
      insert into mail.attempts (message_id, recipient_no, attempt, project_id, provider, host, queue_id, outcome, reply,
                                 started_at, finished_at)
      select message_id, recipient_no, attempt, project_id, provider, host, queue_id, outcome, reply, started_at,
             postern.now()
        from held
      -- It was begun (attempt-starter.sql.ts), or somebody whose commit was in doubt writes the same again.
      on conflict (shard, message_id, recipient_no, attempt) do update
         set host = excluded.host, queue_id = excluded.queue_id, outcome = excluded.outcome, reply = excluded.reply,
             finished_at = excluded.finished_at
       where attempts.outcome = 'begun'
    ), changed as (
      update mail.recipients as recipients
         set status = held.status, reply = held.reply, updated_at = postern.now()
        from held
       where recipients.shard = held.shard and recipients.message_id = held.message_id
         and recipients.recipient_no = held.recipient_no and held.status is not null
         and recipients.status in ('queued', 'scheduled', 'deferred') and recipients.status <> held.status
      returning recipients.message_id, recipients.recipient_no
    )
    insert into mail.attempt_results (message_id, recipient_no, attempt, project_id, type, is_test, recipient, status,
                                      diagnostic)
    select held.message_id, held.recipient_no, held.attempt, held.project_id,
           case held.outcome when 'sent' then 'sent' else held.status end, held.is_test, held.recipient,
           held.enhanced_status, held.reply
      from held left join changed using (message_id, recipient_no)
     where held.outcome = 'sent' or changed.message_id is not null
    returning shard, message_id, recipient_no, attempt, type`.execute(tx)
  return rows
}
