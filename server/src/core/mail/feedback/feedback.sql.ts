import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

/** Which recipient of which message. The shard is told by the return path, so that one cell need be asked. */
export interface RecipientKey {
  shard: number
  messageId: string
  recipientNo: number
}

export interface RecipientRow {
  project_id: number
  address: string
  status: string
  /** How many reports were taken before this one. */
  reports: number
  /** Its status has changed within the time in which a delay is reported once. */
  is_recent: boolean
  /** Its status has not changed for as long as reports are taken. */
  is_expired: boolean
  /** The very same report was taken before. */
  is_repeated: boolean
}

/** For how long: see feedback.ts. */
export interface ReportAges {
  delayHours: number
  reportDays: number
}

const isThisOne = ({ shard, messageId, recipientNo }: RecipientKey) => sql<boolean>`
  shard = ${shard} and message_id = ${messageId} and recipient_no = ${recipientNo}`

/** False when it was noted before. The recipient is locked, so nobody notes the same at once. */
export async function noteSeen(tx: Tx, projectId: number, digest: Buffer): Promise<boolean> {
  const { numAffectedRows } = await sql`
    insert into mail.feedback_seen (project_id, digest) values (${projectId}, ${digest})
    on conflict do nothing`.execute(tx)
  return numAffectedRows === 1n
}

export async function findAddress(tx: ReadTx, recipient: RecipientKey): Promise<string | undefined> {
  const { rows } = await sql<{ address: string }>`
    select address from mail.recipients where ${isThisOne(recipient)}`.execute(tx)
  return rows[0]?.address
}

/** Of the message, where it is recorded. */
export async function findTrace(
  tx: ReadTx,
  { shard, messageId }: RecipientKey,
): Promise<Buffer | null | undefined> {
  const { rows } = await sql<{ trace: Buffer | null }>`
    select trace from mail.messages where shard = ${shard} and id = ${messageId}`.execute(tx)
  return rows[0]?.trace
}

/** Whether there is something left to do. No row is added later, so what is not there need not be deleted. */
export async function lockDispatch(tx: Tx, recipient: RecipientKey): Promise<boolean> {
  const { rows } = await sql`select from mail.dispatch where ${isThisOne(recipient)} for update`.execute(tx)
  return rows.length === 1
}

/**
 * Whether there was something left to do. Whoever handed it over has not written that down yet, or died of it: the
 * attempt that the report speaks of is noted in its place, without what the MTA called it.
 */
export async function deleteDispatch(tx: Tx, recipient: RecipientKey): Promise<boolean> {
  const { rows } = await sql`
    with gone as (
      delete from mail.dispatch where ${isThisOne(recipient)} returning *
    ), noted as (
      insert into mail.attempts (message_id, recipient_no, attempt, project_id, provider, outcome, started_at, finished_at)
      select message_id, recipient_no, attempt, project_id, provider, 'sent',
             coalesce(case attempt when 1 then first_attempt_at end, postern.now()), postern.now()
        from gone where attempt > 0
      on conflict (shard, message_id, recipient_no, attempt) do nothing
    )
    select from gone`.execute(tx)
  return rows.length === 1
}

/** The same, but only where it is in doubt whether the mail was handed over. */
export async function deleteDoubtful(tx: Tx, recipient: RecipientKey): Promise<boolean> {
  const { numAffectedRows } = await sql`
    delete from mail.dispatch where ${isThisOne(recipient)} and state in ('leased', 'awaiting')
       and exists (select from mail.attempts
                    where ${isThisOne(recipient)} and outcome in ('begun', 'unknown'))`.execute(tx)
  return numAffectedRows === 1n
}

/** The attempt whose answer nobody read: it was taken. At most one is in doubt. */
export async function settleAttempt(tx: Tx, recipient: RecipientKey): Promise<void> {
  await sql`
    update mail.attempts set outcome = 'sent', finished_at = postern.now()
     where ${isThisOne(recipient)} and outcome in ('begun', 'unknown')`.execute(tx)
}

/** `is_repeated` may miss a report that is taken at this moment; `noteSeen` does not. */
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
      from mail.recipients as recipients where ${isThisOne(recipient)}
       for no key update`.execute(tx)
  return rows[0]
}

/** The report that says so is counted with it. */
export async function setStatus(
  tx: Tx,
  recipient: RecipientKey,
  status: string,
  reply: string | null,
): Promise<void> {
  await sql`
    update mail.recipients
       set status = ${status}, reply = ${reply}, updated_at = postern.now(), reports = reports + 1
     where ${isThisOne(recipient)}`.execute(tx)
}

export async function countReport(tx: Tx, recipient: RecipientKey): Promise<void> {
  await sql`update mail.recipients set reports = reports + 1 where ${isThisOne(recipient)}`.execute(tx)
}

export interface ForwardedRow {
  project_id: number
  envelope_from: string
  /** They are known to have sent it. */
  is_sender_confirmed: boolean
  name: string
  now: Date
}

/** Of a mail that came in and was sent on: whose it was, and the name that it was sent under. */
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
