import { sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'

/** A pending confirmation message, claimed by one worker. */
export interface Claimed {
  id: number
  project_id: number
  address: string
  round: number
  /** Verified domains of the routes that forward to the address. */
  domain_names: string[]
  /** The message's row in the daily count. */
  mail_id: number
}

export interface ConfirmationLimits {
  /** The maximum number of messages per UTC day. */
  perProject: number
  perAddress: number
}

const today = sql`date_trunc('day', postern.now(), 'UTC')`
const leaseSeconds = 120
/** Less than the minute between two runs (worker.ts), so postponed rows are checked once per run. */
const postponedSeconds = 50
/** The delay for a project whose messages the MTA temporarily rejects. */
const failedSeconds = 600

/** Rows scanned per claim. A project with many routes that cannot be confirmed yet does not delay other projects. */
const scannedAtOnce = 500

/**
 * Claims the oldest confirmation that can be emailed now, and counts it. The lock allows only one worker at a time,
 * because two workers could otherwise both use the last message that the daily limit allows. Confirmations for unverified
 * domains and locked projects are postponed. `hasMore`: the scan reached its bound.
 */
export async function claimNext(
  tx: Tx,
  { perProject, perAddress }: ConfirmationLimits,
): Promise<{ claimed: Claimed | undefined; hasMore: boolean }> {
  await sql`select pg_advisory_xact_lock(hashtextextended('postern forward confirmations', 0))`.execute(tx)
  const { rows } = await sql<Claimed & { scanned: number; id: number | null }>`
    with oldest as materialized (
      select id, project_id, address, requested_at
        from control.forward_confirmations
       where sent_at is null and (leased_until is null or leased_until <= postern.now())
       order by requested_at, id limit ${scannedAtOnce} for update skip locked
    ), checked as materialized (
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
      select id, domain_names from checked where is_due order by requested_at, id limit 1
    ), postponed as (
      update control.forward_confirmations as confirmations
         set leased_until = postern.now() + ${postponedSeconds} * interval '1 second'
        from checked where confirmations.id = checked.id and not checked.is_due
    ), taken as (
      update control.forward_confirmations as confirmations
         set leased_until = postern.now() + ${leaseSeconds} * interval '1 second'
        from due where confirmations.id = due.id
      returning confirmations.id, confirmations.project_id, confirmations.address, confirmations.round, due.domain_names
    ), counted as (
      insert into control.forward_confirmation_mails (project_id, address_digest)
      select project_id, sha256(convert_to(address, 'UTF8')) from taken returning id
    )
    select taken.*, counted.id as mail_id, scanned.scanned
      from (select count(*)::int as scanned from oldest) as scanned
      left join (taken cross join counted) on true`.execute(tx)
  const [row] = rows
  return {
    claimed: row?.id == null ? undefined : row,
    hasMore: row !== undefined && row.scanned === scannedAtOnce,
  }
}

/** Stored before the message is sent, so the link is valid as soon as it arrives. */
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

/** Does nothing if another message was requested in the meantime. */
export async function markSent(tx: Tx, { id, round }: Claimed): Promise<void> {
  await sql`
    update control.forward_confirmations
       set sent_at = case when round = ${round} then postern.now() end, leased_until = null
     where id = ${id}`.execute(tx)
}

/**
 * No message was sent, so the attempt is not counted and is retried later. All of the project's confirmations are delayed,
 * so a customer who adds addresses that no MTA accepts delays only their own confirmations.
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
