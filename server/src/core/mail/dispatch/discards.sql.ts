import { type RawBuilder, sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { setStatementTimeout } from '../../../platform/db/statement-timeout.ts'

/** What a discard matches. */
export interface DiscardFilter {
  accepted_before: Date
  tag: string | null
  /** A-labels in lower case. */
  recipient_domain: string | null
}

const queuedStates = sql`('ready', 'deferred', 'scheduled')`

/**
 * A condition on `dispatch`, a row of mail.dispatch, whatever its state. The preview counts with it, and the worker discards
 * with it.
 */
const matches = (projectId: number, { accepted_before, tag, recipient_domain }: DiscardFilter) => {
  const conditions: RawBuilder<unknown>[] = [
    sql`dispatch.project_id = ${projectId}
        and dispatch.message_id < postern.uuid7_floor(${accepted_before})`,
  ]
  if (recipient_domain !== null) {
    const ending = `@${recipient_domain}`
    conditions.push(sql`lower(right(dispatch.recipient, ${ending.length}::int)) = ${ending}`)
  }
  if (tag !== null) {
    conditions.push(sql`
      coalesce((select ${tag} = any(own.tags) from mail.messages as own
                 where own.shard = dispatch.shard and own.id = dispatch.message_id), false)`)
  }
  return sql.join(conditions, sql` and `)
}

export interface DiscardCounts {
  matched: number
  /** Recipients that a discard without a filter would match. */
  queued: number
  /** Recipients that no discard matches: they are being sent, or a report is awaited. */
  leaving: number
}

const countingMs = 5_000

/** Times out for a queue that is too large to count in a few seconds. */
export async function countMatches(
  tx: ReadTx,
  projectId: number,
  filter: DiscardFilter,
): Promise<DiscardCounts> {
  await setStatementTimeout(tx, countingMs)
  const { rows } = await sql<DiscardCounts>`
    select count(*) filter (where dispatch.state in ${queuedStates} and ${matches(projectId, filter)}) as matched,
           count(*) filter (where dispatch.state in ${queuedStates}) as queued,
           count(*) filter (where dispatch.state not in ${queuedStates}) as leaving
      from mail.dispatch as dispatch
     where dispatch.shard = postern.shard_of(${projectId}) and dispatch.project_id = ${projectId}`.execute(tx)
  const [counts] = rows
  if (!counts) throw new Error('the count returned no row')
  return counts
}

export interface Progress {
  cursor_message_id: string | null
  cursor_recipient_no: number | null
  has_found: boolean
  has_discarded: boolean
  /** `updated_at` of the row in control.discards at the start of this pass. */
  pass_of: Date | null
  finished_at: Date | null
}

/** In its own transaction: another worker that inserts the same row would wait until the end of this one. */
export async function insertProgress(tx: Tx, projectId: number, id: number): Promise<void> {
  await sql`
    insert into mail.discards (project_id, id) values (${projectId}, ${id}) on conflict do nothing`.execute(
    tx,
  )
}

export async function hasProgress(tx: ReadTx, projectId: number, id: number): Promise<boolean> {
  const { rows } = await sql`
    select from mail.discards where shard = postern.shard_of(${projectId}) and id = ${id}`.execute(tx)
  return rows.length > 0
}

/** Undefined if another worker is executing the discard. */
export async function lockProgress(tx: Tx, projectId: number, id: number): Promise<Progress | undefined> {
  const { rows } = await sql<Progress>`
    select cursor_message_id, cursor_recipient_no, has_found, has_discarded, pass_of, finished_at from mail.discards
     where shard = postern.shard_of(${projectId}) and id = ${id} for update skip locked`.execute(tx)
  return rows[0]
}

export interface Batch {
  /** Rows of the queue that were read, of all projects of the shard. */
  scanned: number
  last_message_id: string | null
  last_recipient_no: number | null
  /** Rows that match, including those that cannot be discarded yet. */
  found: number
  /** The ctids of those that were found and are now locked. */
  locked: string[]
}

const noMessage = '00000000-0000-0000-0000-000000000000'

/**
 * After an attempt without a result, the MTA may have accepted the message. Its report arrives before the next attempt, or
 * within this time.
 */
const doubtfulSeconds = 60

/** A condition on a row of mail.dispatch. */
const isDoubtful = sql<boolean>`
  (attempt > 0 and due_at > postern.now() - case state when 'ready' then ${doubtfulSeconds} else 0 end * interval '1 second'
   and exists (select from mail.recipients as recipients
                where recipients.shard = found.shard and recipients.message_id = found.message_id
                  and recipients.recipient_no = found.recipient_no and recipients.status = 'queued'))`

/**
 * Reads the next rows of the shard's queue in key order, of all projects, so that a batch has the same cost however many rows
 * match. A later pass discards rows that are locked or being sent now, rows that the MTA may have accepted, and those whose
 * last result is not published yet: `message.failed` must be the recipient's last event.
 */
export async function lockBatch(
  tx: Tx,
  projectId: number,
  filter: DiscardFilter,
  { cursor_message_id, cursor_recipient_no }: Progress,
  limit: number,
): Promise<Batch> {
  const { rows } = await sql<Batch>`
    with scanned as materialized (
      select shard, message_id, recipient_no, project_id, state, recipient from mail.dispatch
       where shard = postern.shard_of(${projectId})
         and (message_id, recipient_no)
               > (${cursor_message_id ?? noMessage}::uuid, ${cursor_recipient_no ?? 0}::smallint)
         and message_id < postern.uuid7_floor(${filter.accepted_before})
       order by message_id, recipient_no limit ${limit}
    ), found as materialized (
      select shard, message_id, recipient_no from scanned as dispatch
       where state <> 'awaiting' and ${matches(projectId, filter)}
    ), locked as materialized (
      select own.row_ctid from found
       cross join lateral (
         select ctid as row_ctid from mail.dispatch
          where shard = found.shard and message_id = found.message_id and recipient_no = found.recipient_no
            and state in ${queuedStates} and not ${isDoubtful}
            and not exists (
              select from mail.attempt_results as results
               where results.shard = found.shard and results.message_id = found.message_id
                 and results.recipient_no = found.recipient_no)
          limit 1 for update skip locked) as own
    ), last as (
      select message_id, recipient_no from scanned order by message_id desc, recipient_no desc limit 1
    )
    select (select count(*) from scanned) as scanned, (select message_id from last) as last_message_id,
           (select recipient_no from last) as last_recipient_no, (select count(*) from found) as found,
           array(select row_ctid::text from locked) as locked`.execute(tx)
  const [batch] = rows
  if (!batch) throw new Error('the statement returned no batch')
  return batch
}

export async function writeProgress(
  tx: Tx,
  projectId: number,
  id: number,
  {
    cursor_message_id,
    cursor_recipient_no,
    has_found,
    has_discarded,
    pass_of,
    isFinished,
    discarded,
  }: Omit<Progress, 'finished_at'> & { isFinished: boolean; discarded: number },
): Promise<Date | null> {
  const { rows } = await sql<{ finished_at: Date | null }>`
    update mail.discards
       set cursor_message_id = ${cursor_message_id}, cursor_recipient_no = ${cursor_recipient_no},
           has_found = ${has_found}, has_discarded = ${has_discarded}, pass_of = ${pass_of},
           discarded = discarded + ${discarded}, finished_at = ${isFinished ? sql`postern.now()` : sql`null`}, updated_at = postern.now()
     where shard = postern.shard_of(${projectId}) and id = ${id}
    returning finished_at`.execute(tx)
  return rows[0]?.finished_at ?? null
}

export async function findDiscarded(
  tx: ReadTx,
  projectId: number,
  ids: readonly number[],
): Promise<{ id: number; discarded: number }[]> {
  const { rows } = await sql<{ id: number; discarded: number }>`
    select id, discarded from mail.discards
     where shard = postern.shard_of(${projectId}) and project_id = ${projectId} and id = any(${ids})`.execute(
    tx,
  )
  return rows
}

export async function deleteOldProgress(tx: OneStatement, days: number, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from mail.discards where ctid = any(array(
      select ctid from mail.discards where updated_at < postern.now() - ${days} * interval '1 day'
       limit ${limit} for update skip locked))
    returning true`.execute(tx)
  return rows.length
}
