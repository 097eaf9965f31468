import { sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { noticeDays } from '../notifications/queued-mail.ts'

export interface ConfirmationLimits {
  /** The maximum number of messages per UTC day. */
  perProject: number
  perAddress: number
}

const today = sql`date_trunc('day', postern.now(), 'UTC')`
/** Less than the minute between two runs (worker.ts), so postponed rows are checked once per run. */
const postponedSeconds = 50

/** Rows scanned at once. A project with many routes that cannot be confirmed yet does not delay other projects. */
const scannedAtOnce = 500

const verifiedNames = (project: ReturnType<typeof sql>, address: ReturnType<typeof sql>) => sql`
  (select array_agg(distinct domains.name)
     from control.routes as routes
     join control.domains as domains on domains.id = routes.domain_id and domains.status = 'verified'
    where routes.project_id = ${project} and lower(routes.forward_to) = ${address})`

/**
 * Adds the oldest confirmation that may be mailed now to the queue of system mail, and counts it. The lock allows only one
 * worker at a time, because two workers could otherwise both use the last message that the daily limit allows. Confirmations
 * for unverified domains and locked projects are postponed. `hasMore`: the scan reached its bound.
 */
export async function releaseDue(
  tx: Tx,
  { perProject, perAddress }: ConfirmationLimits,
): Promise<{ isReleased: boolean; hasMore: boolean }> {
  await sql`select pg_advisory_xact_lock(hashtextextended('postern forward confirmations', 0))`.execute(tx)
  const { rows } = await sql<{ released: number; scanned: number }>`
    with oldest as materialized (
      select id, project_id, address, requested_at
        from control.forward_confirmations
       where sent_at is null and (postponed_until is null or postponed_until <= postern.now())
       order by requested_at, id limit ${scannedAtOnce} for update skip locked
    ), checked as materialized (
      select oldest.*,
             ${verifiedNames(sql`oldest.project_id`, sql`oldest.address`)} is not null
               and exists (select from control.projects as projects
                            where projects.id = oldest.project_id and not projects.is_locked)
               and (select count(*) from control.forward_confirmation_mails as mails
                     where mails.project_id = oldest.project_id and mails.sent_at >= ${today}) < ${perProject}
               and (select count(*) from control.forward_confirmation_mails as mails
                     where mails.address_digest = sha256(convert_to(oldest.address, 'UTF8'))
                       and mails.sent_at >= ${today}) < ${perAddress} as is_due
        from oldest
    ), due as (
      select id, project_id, address from checked where is_due order by requested_at, id limit 1
    ), postponed as (
      update control.forward_confirmations as confirmations
         set postponed_until = postern.now() + ${postponedSeconds} * interval '1 second'
        from checked where confirmations.id = checked.id and not checked.is_due
    ), released as (
      update control.forward_confirmations as confirmations set sent_at = postern.now(), postponed_until = null
        from due where confirmations.id = due.id
    ), counted as (
      insert into control.forward_confirmation_mails (project_id, address_digest)
      select project_id, sha256(convert_to(address, 'UTF8')) from due
    )
    select (select count(control.add_system_mail(
                     'forward_confirmation', id, project_id, postern.now() + ${noticeDays} * interval '1 day'))::int
              from due) as released,
           (select count(*)::int from oldest) as scanned`.execute(tx)
  const [row] = rows
  return { isReleased: row?.released === 1, hasMore: row?.scanned === scannedAtOnce }
}

/** Undefined if the target has confirmed, the routes were deleted, or another message was requested. */
export async function lockReleased(
  tx: Tx,
  id: number,
): Promise<{ address: string; domain_names: string[] | null; is_locked: boolean } | undefined> {
  const { rows } = await sql<{ address: string; domain_names: string[] | null; is_locked: boolean }>`
    select confirmations.address, projects.is_locked,
           ${verifiedNames(sql`confirmations.project_id`, sql`confirmations.address`)} as domain_names
      from control.forward_confirmations as confirmations
      join control.projects as projects on projects.id = confirmations.project_id
     where confirmations.id = ${id} and confirmations.sent_at is not null
       for no key update of confirmations`.execute(tx)
  return rows[0]
}

export async function returnToPending(tx: Tx, id: number): Promise<void> {
  await sql`update control.forward_confirmations set sent_at = null where id = ${id}`.execute(tx)
}

/** Stored before the message is sent, so the link is valid as soon as it arrives. */
export async function storeToken(tx: Tx, id: number, hash: Buffer, lifetimeDays: number): Promise<void> {
  await sql`
    update control.forward_confirmations
       set token_hash = ${hash}, expires_at = postern.now() + ${lifetimeDays} * interval '1 day'
     where id = ${id}`.execute(tx)
}

/** Returns the number of messages requested so far, including this one. */
export async function requestAgain(tx: Tx, projectId: number, address: string): Promise<number | null> {
  const { rows } = await sql<{ round: number | null }>`
    select control.request_forward_confirmation(${projectId}, ${address}) as round`.execute(tx)
  return rows[0]?.round ?? null
}

export async function findByToken(
  tx: ReadTx,
  hash: Buffer,
): Promise<{ address: string; domain_names: string[] } | undefined> {
  const { rows } = await sql<{ address: string; domain_names: string[] }>`
    select * from control.forward_confirmation_of(${hash})`.execute(tx)
  return rows[0]
}

export async function confirm(tx: Tx, hash: Buffer): Promise<boolean> {
  const { rows } = await sql<{ is_confirmed: boolean }>`
    select control.confirm_forward(${hash}) as is_confirmed`.execute(tx)
  return rows[0]?.is_confirmed ?? false
}

/** Deletes the counts from past days. */
export async function deleteOldMails(tx: OneStatement, atMost: number): Promise<number> {
  const { rows } = await sql`
    delete from control.forward_confirmation_mails
     where id in (select id from control.forward_confirmation_mails
                   where sent_at < postern.now() - interval '2 days' order by sent_at limit ${atMost})
    returning id`.execute(tx)
  return rows.length
}
