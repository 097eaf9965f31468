import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

/** A mail that asks for consent, taken by one worker. */
export interface Claimed {
  id: number
  project_id: number
  address: string
  round: number
  /** Verified domains of the routes that forward to the address. */
  domain_names: string[]
  /** Its row in the count of the day. */
  mail_id: number
}

export interface ConfirmationLimits {
  /** Mails in a UTC day. */
  perProject: number
  perAddress: number
}

const today = sql`date_trunc('day', postern.now(), 'UTC')`
const leaseSeconds = 120
/** Less than a minute: those that wait for something else are looked at once in a round (worker.ts). */
const postponedSeconds = 50
/** A project whose mail the MTA does not take now. */
const failedSeconds = 600

/** What is found at one look. A project with many routes that cannot be mailed about does not delay those of others. */
const lookedAtOnce = 500

/**
 * Takes the oldest that may be mailed now, and counts it. One worker at a time does so: two would both find room for the last
 * mail of a day. Nothing is mailed for a domain that is not verified, nor for a locked project; these are postponed.
 * `hasMore`: only the oldest were looked at.
 */
export async function claimNext(
  tx: Tx,
  { perProject, perAddress }: ConfirmationLimits,
): Promise<{ claimed: Claimed | undefined; hasMore: boolean }> {
  await sql`select pg_advisory_xact_lock(hashtextextended('postern forward confirmations', 0))`.execute(tx)
  const { rows } = await sql<Claimed & { looked: number; id: number | null }>`
    with oldest as materialized (
      select id, project_id, address, requested_at
        from control.forward_confirmations
       where sent_at is null and (leased_until is null or leased_until <= postern.now())
       order by requested_at, id limit ${lookedAtOnce} for update skip locked
    ), judged as materialized (
      select oldest.id, oldest.requested_at, names.domain_names,
             names.domain_names is not null
               and exists (select from control.projects as projects
                            where projects.id = oldest.project_id and not projects.is_locked)
               and (select count(*) from control.forward_confirmation_mails as mails
                     where mails.project_id = oldest.project_id and mails.sent_at >= ${today}) < ${perProject}
               and (select count(*) from control.forward_confirmation_mails as mails
                     where mails.address_digest = sha256(convert_to(oldest.address, 'UTF8'))
                       and mails.sent_at >= ${today}) < ${perAddress} as is_due
        from oldest
       cross join lateral (
         select array_agg(distinct domains.name) as domain_names
           from control.routes as routes
           join control.domains as domains on domains.id = routes.domain_id and domains.status = 'verified'
          where routes.project_id = oldest.project_id and lower(routes.forward_to) = oldest.address) as names
    ), due as (
      select id, domain_names from judged where is_due order by requested_at, id limit 1
    ), postponed as (
      update control.forward_confirmations as confirmations
         set leased_until = postern.now() + ${postponedSeconds} * interval '1 second'
        from judged where confirmations.id = judged.id and not judged.is_due
    ), taken as (
      update control.forward_confirmations as confirmations
         set leased_until = postern.now() + ${leaseSeconds} * interval '1 second'
        from due where confirmations.id = due.id
      returning confirmations.id, confirmations.project_id, confirmations.address, confirmations.round, due.domain_names
    ), counted as (
      insert into control.forward_confirmation_mails (project_id, address_digest)
      select project_id, sha256(convert_to(address, 'UTF8')) from taken returning id
    )
    select taken.*, counted.id as mail_id, looked.looked
      from (select count(*)::int as looked from oldest) as looked
      left join (taken cross join counted) on true`.execute(tx)
  const [row] = rows
  return {
    claimed: row?.id == null ? undefined : row,
    hasMore: row !== undefined && row.looked === lookedAtOnce,
  }
}

/** Before the mail goes out: who reads it at once must not be told that there is no such link. */
export async function storeToken(
  tx: Tx,
  { id, round }: Claimed,
  hash: Buffer,
  lifetimeDays: number,
): Promise<void> {
  await sql`
    update control.forward_confirmations
       set token_hash = ${hash}, expires_at = postern.now() + ${lifetimeDays} * interval '1 day'
     where id = ${id} and round = ${round}`.execute(tx)
}

/** Not if another mail was asked for meanwhile. */
export async function markSent(tx: Tx, { id, round }: Claimed): Promise<void> {
  await sql`
    update control.forward_confirmations
       set sent_at = case when round = ${round} then postern.now() end, leased_until = null
     where id = ${id}`.execute(tx)
}

/**
 * No mail went out: it counts for nothing, and is tried again later. So are the others of its project: whoever adds addresses
 * that no MTA takes delays only their own.
 */
export async function putOff(tx: Tx, { mail_id, project_id }: Claimed): Promise<void> {
  await sql`delete from control.forward_confirmation_mails where id = ${mail_id}`.execute(tx)
  await sql`
    update control.forward_confirmations as confirmations
       set leased_until = postern.now() + ${failedSeconds} * interval '1 second'
      from (select id from control.forward_confirmations
             where project_id = ${project_id} and sent_at is null for update skip locked) as waiting
     where confirmations.id = waiting.id`.execute(tx)
}

/** How many mails were asked for with this one. */
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

/** The counts of days that are over. */
export async function deleteOldMails(tx: Tx, atMost: number): Promise<number> {
  const { rows } = await sql`
    delete from control.forward_confirmation_mails
     where id in (select id from control.forward_confirmation_mails
                   where sent_at < postern.now() - interval '2 days' order by sent_at limit ${atMost})
    returning id`.execute(tx)
  return rows.length
}
