import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

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
  /** Number of reports applied before this one. */
  reports: number
  /** The status changed within the last `delayHours`. */
  is_recent: boolean
  /** The status last changed more than `reportDays` ago. */
  is_expired: boolean
  /** An identical report has already been applied. */
  is_repeated: boolean
}

/** See feedback.ts. */
export interface ReportAges {
  delayHours: number
  reportDays: number
}

const isRecipient = ({ shard, messageId, recipientNo }: RecipientKey) => sql<boolean>`
  shard = ${shard} and message_id = ${messageId} and recipient_no = ${recipientNo}`

/** Returns false if the digest already exists. The recipient is locked, so there is no concurrent insert. */
export async function insertSeen(tx: Tx, projectId: number, digest: Buffer): Promise<boolean> {
  const { numAffectedRows } = await sql`
    insert into mail.feedback_seen (project_id, digest) values (${projectId}, ${digest})
    on conflict do nothing`.execute(tx)
  return numAffectedRows === 1n
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
 * Locks the dispatch row and returns whether it exists. Dispatch rows are never added later, so a missing row
 * need not be deleted.
 */
export async function lockDispatch(tx: Tx, recipient: RecipientKey): Promise<boolean> {
  const { rows } = await sql`select from mail.dispatch where ${isRecipient(recipient)} for update`.execute(tx)
  return rows.length === 1
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

/** `is_repeated` can miss a report that is being applied concurrently; `insertSeen` does not. */
export async function lock(
  tx: Tx,
  recipient: RecipientKey,
  digest: Buffer,
  { delayHours, reportDays }: ReportAges,
): Promise<RecipientRow | undefined> {
  const { rows } = await sql<RecipientRow>`
    select project_id, address, status, reports,
           updated_at > postern.now() - make_interval(hours => ${delayHours}) as is_recent,
           updated_at < postern.now() - make_interval(days => ${reportDays}) as is_expired,
           exists (select from mail.feedback_seen as seen
                    where seen.shard = recipients.shard and seen.project_id = recipients.project_id
                      and seen.digest = ${digest}) as is_repeated
      from mail.recipients as recipients where ${isRecipient(recipient)}
       for no key update`.execute(tx)
  return rows[0]
}

/** Also increments the number of reports. */
export async function setStatus(
  tx: Tx,
  recipient: RecipientKey,
  status: string,
  reply: string | null,
): Promise<void> {
  await sql`
    update mail.recipients
       set status = ${status}, reply = ${reply}, updated_at = postern.now(), reports = reports + 1
     where ${isRecipient(recipient)}`.execute(tx)
}

export async function countReport(tx: Tx, recipient: RecipientKey): Promise<void> {
  await sql`update mail.recipients set reports = reports + 1 where ${isRecipient(recipient)}`.execute(tx)
}

export interface ForwardedRow {
  project_id: number
  envelope_from: string
  /** The envelope sender was authenticated. */
  is_sender_confirmed: boolean
  name: string
  now: Date
}

/** For a forwarded message: its original envelope sender and the domain that forwarded it. */
export async function findForwarded(
  tx: ReadTx,
  { shard, messageId }: RecipientKey,
): Promise<ForwardedRow | undefined> {
  const { rows } = await sql<ForwardedRow>`
    select messages.project_id, messages.forwarded ->> 'envelope_from' as envelope_from,
           (messages.forwarded ->> 'is_sender_confirmed')::boolean as is_sender_confirmed, identities.name,
           postern.now() as now
      from mail.messages as messages
      join control.identities as identities
        on identities.project_id = messages.project_id and identities.id = messages.identity_id
     where messages.shard = ${shard} and messages.id = ${messageId} and messages.forwarded is not null`.execute(
    tx,
  )
  return rows[0]
}

export async function deleteSeen(tx: Tx, days: number, atMost: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from mail.feedback_seen where ctid = any(array(
      select ctid from mail.feedback_seen where seen_at < postern.now() - make_interval(days => ${days})
      order by seen_at limit ${atMost}))`.execute(tx)
  return Number(numAffectedRows ?? 0n)
}
