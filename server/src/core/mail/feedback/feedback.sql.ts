import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { daysOf } from '../../../platform/ids.ts'
import type { AttemptResult } from '../dispatch/results.ts'

/** One recipient of one message. The return path contains the shard, so only one cell is queried. */
export interface RecipientKey {
  shard: number
  messageId: string
  recipientNo: number
}

export interface RecipientRow {
  project_id: number
  address: string
  status: string
  /** The digests of the reports applied before, concatenated. */
  report_digests: Buffer
  /** The status changed within the last `delayHours`. */
  is_recent: boolean
  /** The status last changed more than `reportDays` ago. */
  is_expired: boolean
}

/** See feedback.ts. */
export interface ReportAges {
  delayHours: number
  reportDays: number
}

const isRecipient = ({ shard, messageId, recipientNo }: RecipientKey) => sql<boolean>`
  shard = ${shard} and message_id = ${messageId} and recipient_no = ${recipientNo}`

/** The keys as a table with the columns shard, message_id, recipient_no and ordinal, which starts at 1. */
const keyTable = (keys: readonly RecipientKey[]) => sql`
  unnest(${keys.map(({ shard }) => shard)}::smallint[], ${keys.map(({ messageId }) => messageId)}::uuid[],
         ${keys.map(({ recipientNo }) => recipientNo)}::smallint[])
    with ordinality as key (shard, message_id, recipient_no, ordinal)`

/** Limits a statement about these messages to the daily partitions that contain them. */
const isOnTheirDays = (keys: readonly RecipientKey[], column: string) => {
  const { first, last } = daysOf(keys.map(({ messageId }) => messageId))
  return sql<boolean>`${sql.ref(column)} between ${first}::uuid and ${last}::uuid`
}

export async function findAddress(tx: ReadTx, recipient: RecipientKey): Promise<string | undefined> {
  const { rows } = await sql<{ address: string }>`
    select address from mail.recipients where ${isRecipient(recipient)}`.execute(tx)
  return rows[0]?.address
}

/** The trace context of the message, if it was stored. */
export async function findTrace(
  tx: ReadTx,
  { shard, messageId }: RecipientKey,
): Promise<Buffer | null | undefined> {
  const { rows } = await sql<{ trace: Buffer | null }>`
    select trace from mail.messages where shard = ${shard} and id = ${messageId}`.execute(tx)
  return rows[0]?.trace
}

/**
 * Locks the dispatch rows that exist, in the order of `keys`, and returns the indexes of their keys. Dispatch rows
 * are never added later, so a missing row need not be deleted. `lockTimeout` applies to the whole transaction.
 */
export async function lockDispatch(
  tx: Tx,
  keys: readonly RecipientKey[],
  lockTimeout: string | null,
): Promise<Set<number>> {
  const { rows } = await sql<{ ordinal: number }>`
    with timeout as materialized (
      select set_config('lock_timeout', coalesce(${lockTimeout}, current_setting('lock_timeout')), true) as value
    )
    select key.ordinal::int from timeout cross join ${keyTable(keys)}
     cross join lateral (
       select from mail.dispatch
        where shard = key.shard and message_id = key.message_id and recipient_no = key.recipient_no
          -- Sets the timeout before the first lock.
          and timeout.value is not null
        limit 1 for update) as dispatch`.execute(tx)
  return new Set(rows.map(({ ordinal }) => ordinal - 1))
}

/** Locks the recipients in the order of `keys`. Returns a row or undefined for each key. */
export async function lockRecipients(
  tx: Tx,
  keys: readonly RecipientKey[],
  { delayHours, reportDays }: ReportAges,
): Promise<(RecipientRow | undefined)[]> {
  const { rows } = await sql<RecipientRow & { ordinal: number }>`
    select key.ordinal::int, recipient.* from ${keyTable(keys)}
     cross join lateral (
       select project_id, address, status, report_digests,
              updated_at > postern.now() - make_interval(hours => ${delayHours}) as is_recent,
              updated_at < postern.now() - make_interval(days => ${reportDays}) as is_expired
         from mail.recipients
        where shard = key.shard and message_id = key.message_id and recipient_no = key.recipient_no
          and ${isOnTheirDays(keys, 'message_id')}
        limit 1 for no key update) as recipient`.execute(tx)
  const found = new Map(rows.map((row) => [row.ordinal - 1, row]))
  return keys.map((_key, index) => found.get(index))
}

/** A report to be written to its locked recipient. */
export interface ReportRow extends RecipientKey {
  digest: Buffer
  /** The new status; null leaves the status, the reply and the time of the last change unchanged. */
  status: string | null
  reply: string | null
}

/**
 * Writes reports to their recipients, and deletes and returns the recipients' unpublished results. Waits for any
 * transaction that is publishing one of these results.
 *
 * The recipients are updated by `insert … on conflict`, for the reason given in dispatch/attempt-recorder.sql.ts.
 */
export async function writeReports(tx: Tx, reports: readonly ReportRow[]): Promise<AttemptResult[]> {
  const each = <T>(value: (report: ReportRow) => T): T[] => reports.map(value)
  const { rows } = await sql<{ written: number; taken: AttemptResult[] }>`
    with report as materialized (
      select * from unnest(
        ${each(({ shard }) => shard)}::smallint[], ${each(({ messageId }) => messageId)}::uuid[],
        ${each(({ recipientNo }) => recipientNo)}::smallint[],
        ${each(({ digest }) => digest.toString('hex'))}::text[], ${each(({ status }) => status)}::text[],
        ${each(({ reply }) => reply)}::text[])
        as report (shard, message_id, recipient_no, digest, status, reply)
    ), written as (
      insert into mail.recipients as recipients (message_id, recipient_no, project_id, kind, address, report_digests, status,
                                                 reply, updated_at)
      select recipient.message_id, recipient.recipient_no, recipient.project_id, recipient.kind, recipient.address,
             recipient.report_digests || decode(report.digest, 'hex'), coalesce(report.status, recipient.status),
             case when report.status is null then recipient.reply else report.reply end,
             case when report.status is null then recipient.updated_at else postern.now() end
        from report
       cross join lateral (
         select * from mail.recipients
          where shard = report.shard and message_id = report.message_id and recipient_no = report.recipient_no
            and ${isOnTheirDays(reports, 'message_id')}
          limit 1) as recipient
      on conflict (shard, message_id, recipient_no) do update
         set report_digests = excluded.report_digests, status = excluded.status, reply = excluded.reply,
             updated_at = excluded.updated_at
      returning true
    ), taken as (
      delete from mail.attempt_results as results using report
       where results.shard = report.shard and results.message_id = report.message_id
         and results.recipient_no = report.recipient_no
      returning results.*
    )
    select (select count(*)::int from written) as written,
           (select coalesce(json_agg(taken), '[]') from taken) as taken`.execute(tx)
  const [row] = rows
  if (row?.written !== reports.length) throw new Error('a locked recipient was not found')
  return row.taken
}

/**
 * Deletes the dispatch row and returns whether it existed. If it did, the worker that sent the message has
 * not recorded the attempt yet, or has crashed. The report's attempt is recorded instead, without the MTA's
 * queue id.
 */
export async function deleteDispatch(tx: Tx, recipient: RecipientKey): Promise<boolean> {
  const { rows } = await sql`
    with gone as (
      delete from mail.dispatch where ${isRecipient(recipient)} returning *
    ), recorded as (
      insert into mail.attempts (message_id, recipient_no, attempt, project_id, provider, outcome, started_at, finished_at)
      select message_id, recipient_no, attempt, project_id, provider, 'sent',
             coalesce(case attempt when 1 then first_attempt_at end, postern.now()), postern.now()
        from gone where attempt > 0
      on conflict (shard, message_id, recipient_no, attempt) do nothing
    )
    select from gone`.execute(tx)
  return rows.length === 1
}

/** Like `deleteDispatch`, but only if it is unknown whether the provider received the message. */
export async function deleteUncertain(tx: Tx, recipient: RecipientKey): Promise<boolean> {
  const { numAffectedRows } = await sql`
    delete from mail.dispatch where ${isRecipient(recipient)} and state in ('leased', 'awaiting')
       and exists (select from mail.attempts
                    where ${isRecipient(recipient)} and outcome in ('begun', 'unknown'))`.execute(tx)
  return numAffectedRows === 1n
}

/** Marks the attempt with an unknown outcome as sent. There is at most one. */
export async function resolveAttempt(tx: Tx, recipient: RecipientKey): Promise<void> {
  await sql`
    update mail.attempts set outcome = 'sent', finished_at = postern.now()
     where ${isRecipient(recipient)} and outcome in ('begun', 'unknown')`.execute(tx)
}

export interface ForwardedRow {
  project_id: number
  envelope_from: string
  /** The envelope sender was authenticated. */
  is_sender_confirmed: boolean
  name: string
  now: Date
}

/** For each forwarded message: its original envelope sender and the domain that forwarded it, by index of its key. */
export async function findForwarded(
  tx: ReadTx,
  keys: readonly RecipientKey[],
): Promise<Map<number, ForwardedRow>> {
  const { rows } = await sql<ForwardedRow & { ordinal: number }>`
    select key.ordinal::int, message.project_id, message.forwarded ->> 'envelope_from' as envelope_from,
           (message.forwarded ->> 'is_sender_confirmed')::boolean as is_sender_confirmed, identities.name,
           postern.now() as now
      from ${keyTable(keys)}
      cross join lateral (
        select project_id, identity_id, forwarded from mail.messages
         where shard = key.shard and id = key.message_id and ${isOnTheirDays(keys, 'id')} and forwarded is not null
         limit 1) as message
      join control.identities as identities
        on identities.project_id = message.project_id and identities.id = message.identity_id`.execute(tx)
  return new Map(rows.map(({ ordinal, ...row }) => [ordinal - 1, row]))
}
