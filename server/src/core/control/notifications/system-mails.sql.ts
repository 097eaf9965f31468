import { sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'

export const kinds = [
  ...([
    'invitation',
    'password_reset',
    'sign_up',
    'email_change',
    'email_changed',
    'account_changed',
  ] as const),
  ...(['forward_confirmation'] as const),
  ...(['endpoint_disabled', 'domain_failing', 'intervention'] as const),
] as const
export type Kind = (typeof kinds)[number]

/** A mail that one worker has leased. */
export interface ClaimedMail {
  id: string
  kind: Kind
  subject_id: number
  project_id: number | null
  created_at: Date
  attempts: number
  lease_no: number
}

/** Longer than the calls of one attempt can take (providers/smtp-transport.ts). */
const leaseSeconds = 120

/** How long a notice to a project's owner is of use. */
export const noticeDays = 7

/** Adds a mail, or replaces the waiting mail about the same subject. Must run in the transaction of its cause. */
export async function addSystemMail(
  tx: Tx,
  kind: Kind,
  { id, project_id }: { id: number; project_id: number },
): Promise<void> {
  await sql`
    select control.add_system_mail(
      ${kind}, ${id}, ${project_id}, postern.now() + ${noticeDays} * interval '1 day')`.execute(tx)
}

/** The same for mail about an account. */
export async function addSystemMailUntil(tx: Tx, kind: Kind, id: number, until: Date): Promise<void> {
  await sql`select control.add_system_mail(${kind}, ${id}, null, ${until})`.execute(tx)
}

/** Leases the mail that has been due for the longest time. */
export async function claimNext(tx: Tx): Promise<ClaimedMail | undefined> {
  // Materialized, because a join could otherwise select another row for each row of the table.
  const { rows } = await sql<ClaimedMail>`
    with due as materialized (
      select id from control.system_mails
       where outcome is null and due_at <= postern.now() and expires_at > postern.now()
         and (leased_until is null or leased_until <= postern.now())
       order by due_at limit 1 for update skip locked
    )
    update control.system_mails as mails
       set leased_until = postern.now() + ${leaseSeconds} * interval '1 second', lease_no = lease_no + 1,
           attempts = attempts + 1
      from due where mails.id = due.id
    returning mails.id, mails.kind, mails.subject_id, mails.project_id, mails.created_at, mails.attempts,
              mails.lease_no`.execute(tx)
  return rows[0]
}

/** False if the lease has been taken over or the mail has been replaced, in which case nothing is written. */
export async function finish(
  tx: Tx,
  { id, lease_no }: ClaimedMail,
  { outcome, status }: { outcome: 'sent' | 'rejected' | 'obsolete'; status: string | null },
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update control.system_mails
       set outcome = ${outcome}, status = ${status}, finished_at = postern.now(), leased_until = null
     where id = ${id} and lease_no = ${lease_no} and outcome is null`.execute(tx)
  return numAffectedRows === 1n
}

/** False as above. */
export async function retryLater(
  tx: Tx,
  { id, lease_no }: ClaimedMail,
  { delaySeconds, status }: { delaySeconds: number; status: string | null },
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update control.system_mails
       set due_at = postern.now() + ${delaySeconds} * interval '1 second', status = ${status}, leased_until = null
     where id = ${id} and lease_no = ${lease_no} and outcome is null`.execute(tx)
  return numAffectedRows === 1n
}

/** Finishes mail that could not be sent in time, unless a worker is sending it. */
export async function finishExpired(
  tx: Tx,
): Promise<{ id: string; kind: Kind; project_id: number | null; status: string | null }[]> {
  const { rows } = await sql<{ id: string; kind: Kind; project_id: number | null; status: string | null }>`
    update control.system_mails set outcome = 'expired', finished_at = postern.now()
     where outcome is null and expires_at <= postern.now()
       and (leased_until is null or leased_until <= postern.now())
    returning id, kind, project_id, status`.execute(tx)
  return rows
}

/** The number of mails that were added in the last minute and are waiting. */
export async function countNew(tx: ReadTx): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from control.system_mails
     where outcome is null and created_at > postern.now() - interval '1 minute'`.execute(tx)
  return rows[0]?.count ?? 0
}

export async function deleteFinished(tx: OneStatement, atMost: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.system_mails where id in (
      select id from control.system_mails
       where outcome is not null and finished_at < postern.now() - interval '30 days' limit ${atMost})`.execute(
    tx,
  )
  return Number(numAffectedRows ?? 0)
}
