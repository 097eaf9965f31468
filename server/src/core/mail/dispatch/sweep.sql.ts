import { type RawBuilder, sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { LaneKey } from './lanes.sql.ts'

// When a message becomes ready, its due time is set to the current time, because claims read nothing below
// the lane's watermark (lanes.ts).

export interface Sweepable {
  is_due: boolean
  is_lost: boolean
  is_awaited: boolean
  has_results: boolean
}

/**
 * Returns which of the statements below have work to do. Planning each of them over all partitions would take
 * 10 ms or more every second, and usually there is nothing to do.
 */
export async function findSweepable(tx: ReadTx): Promise<Sweepable> {
  const { rows } = await sql<Sweepable>`
    select exists (select from mail.dispatch where state in ('deferred', 'scheduled') and due_at <= postern.now())
             as is_due,
           exists (select from mail.dispatch where state = 'leased' and leased_until < postern.now()) as is_lost,
           exists (select from mail.dispatch where state = 'awaiting' and due_at <= postern.now()) as is_awaited,
           exists (select from mail.attempt_results where due_at <= postern.now()) as has_results`.execute(tx)
  const [found] = rows
  if (!found) throw new Error('the database returned no row')
  return found
}

/** Makes due deferred and scheduled messages ready. Returns the number of messages. */
export async function promoteDue(tx: Tx, limit: number): Promise<number> {
  const { rows } = await sql<{ is_scheduled: boolean }>`
    with due as materialized (
      select ctid, state from mail.dispatch
       where state in ('deferred', 'scheduled') and due_at <= postern.now()
       order by due_at limit ${limit} for update skip locked
    ), started as (
      update mail.recipients as recipients set status = 'queued', updated_at = postern.now()
        from mail.dispatch as dispatch
       where dispatch.ctid = any(array(select ctid from due where state = 'scheduled'))
         and recipients.shard = dispatch.shard and recipients.message_id = dispatch.message_id
         and recipients.recipient_no = dispatch.recipient_no and recipients.status = 'scheduled'
    )
    update mail.dispatch set state = 'ready', due_at = postern.now()
     where ctid = any(array(select ctid from due))
    returning true`.execute(tx)
  return rows.length
}

/**
 * Recovers the expired leases of crashed workers. It is unknown whether the provider received the message, so
 * the message is sent again, unless an attempt was recorded before the call (attempt-starter.ts). In that
 * case the provider's report is awaited.
 */
export async function recoverLeases(tx: Tx, limit: number, awaitedSeconds: number): Promise<number> {
  const { rows } = await sql`
    with lost as materialized (
      select dispatch.ctid, begun.attempt is not null as is_begun
        from (select ctid, shard, message_id, recipient_no, attempt from mail.dispatch
               where state = 'leased' and leased_until < postern.now()
               order by leased_until limit ${limit} for update skip locked) as dispatch
        left join lateral (
          select attempt from mail.attempts
           where shard = dispatch.shard and message_id = dispatch.message_id
             and recipient_no = dispatch.recipient_no and attempt = dispatch.attempt) as begun on true
    )
    update mail.dispatch as dispatch
       set (state, due_at) = (
             select case when is_begun then 'awaiting' else 'ready' end,
                    postern.now() + case when is_begun then ${awaitedSeconds} else 0 end * interval '1 second'
               from lost where lost.ctid = dispatch.ctid),
           leased_until = null
     where ctid = any(array(select ctid from lost))
    returning true`.execute(tx)
  return rows.length
}

/** Fails messages whose report did not arrive in time. Returns the number of messages. */
export const expireAwaiting = (tx: Tx, { reply, limit }: { reply: string; limit: number }): Promise<number> =>
  expire(
    tx,
    { reply, byOperator: false },
    sql`select ctid from mail.dispatch where state = 'awaiting' and due_at <= postern.now()
         order by due_at limit ${limit} for update skip locked`,
  )

/**
 * Fails messages that have been ready for `days` but were not claimed because their project is blocked or
 * their provider is unavailable.
 */
export const expireReady = (
  tx: Tx,
  { shard, project_id, provider, is_large }: LaneKey,
  { days, reply, limit }: { days: number; reply: string; limit: number },
): Promise<number> =>
  expire(
    tx,
    { reply, byOperator: true },
    sql`select ctid from mail.dispatch
         where shard = ${shard} and project_id = ${project_id} and provider = ${provider} and is_large = ${is_large}
           and state = 'ready' and due_at < postern.now() - ${days} * interval '1 day'
         order by due_at limit ${limit} for update skip locked`,
  )

/** Fails messages whose rows the transaction has locked. */
export const failLocked = (tx: Tx, reply: string, ctids: readonly string[]): Promise<number> =>
  ctids.length === 0
    ? Promise.resolve(0)
    : expire(tx, { reply, byOperator: true }, sql`select unnest(${ctids}::tid[])`)

/**
 * A recipient whose status a report has set in the meantime keeps that status, and no result is published.
 */
async function expire(
  tx: Tx,
  { reply, byOperator }: { reply: string; byOperator: boolean },
  rows: RawBuilder<unknown>,
): Promise<number> {
  const { rows: counted } = await sql<{ expired: number }>`
    with expired as (
      delete from mail.dispatch where ctid = any(array(${rows}))
      returning shard, message_id, recipient_no, attempt, project_id, provider, recipient
    ), changed as (
      update mail.recipients as recipients set status = 'failed', reply = ${reply}, updated_at = postern.now()
        from expired
       where recipients.shard = expired.shard and recipients.message_id = expired.message_id
         and recipients.recipient_no = expired.recipient_no
         and recipients.status in ('queued', 'scheduled', 'deferred')
      returning recipients.message_id, recipients.recipient_no
    ), result as (
      insert into mail.attempt_results (message_id, recipient_no, attempt, project_id, type, is_test, recipient,
                                        diagnostic, due_at, is_ended_by_operator)
      select message_id, recipient_no, attempt, project_id, 'failed', provider = 'none', recipient, ${reply}, postern.now(),
             ${byOperator}::boolean
        from expired join changed using (message_id, recipient_no)
    )
    select count(*)::int as expired from expired`.execute(tx)
  return counted[0]?.expired ?? 0
}
