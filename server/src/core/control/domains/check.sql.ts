import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { DnsRecordView, MtaProviderName } from './wire.ts'

export interface CheckedRecord extends DnsRecordView {
  id: number
}

/** The state of a domain at the start of its check. */
export interface CheckedDomain {
  id: number
  project_id: number
  name: string
  mta_provider: MtaProviderName
  status: 'pending' | 'verified' | 'failed'
  checks_failed: number
  failing_ms: number | null
  unanswered_ms: number | null
  unanswered_warned_days: number
  /** Incremented by every edit and every rotation. */
  version: number
  /** With microsecond precision. Claiming the domain sets this time to the end of the lease. */
  due_at: string
  identity_id: number
  identity_state: string
  /** The account and region in which the provider has the identity. */
  account: string | null
  region: string | null
}

const domainFields = sql`
  domains.id, domains.project_id, domains.name, domains.mta_provider, domains.status, domains.version,
  domains.next_check_at::text as due_at, domains.checks_failed, identities.id as identity_id,
  identities.state as identity_state, identities.account, identities.region,
  domains.unanswered_warned_days,
  (extract(epoch from postern.now() - domains.failing_since) * 1000)::float8 as failing_ms,
  (extract(epoch from postern.now() - domains.unanswered_since) * 1000)::float8 as unanswered_ms`

const livingIdentity = sql`
  join control.identities as identities
    on identities.project_id = domains.project_id and identities.domain_id = domains.id
   and identities.retiring_at is null`

/** Claims due domains by moving `next_check_at` to the end of a lease. After a crash they are due again. */
export async function claimDue(
  tx: Tx,
  {
    limit,
    leaseSeconds,
    only,
  }: { limit: number; leaseSeconds: number; only?: { projectId: number; id: number } },
): Promise<CheckedDomain[]> {
  const which = only ? sql`and project_id = ${only.projectId} and id = ${only.id}` : sql``
  const { rows } = await sql<CheckedDomain>`
    with due as (
      select id from control.domains where next_check_at <= postern.now() ${which}
      order by next_check_at limit ${limit} for update skip locked
    ), taken as (
      update control.domains set next_check_at = postern.now() + ${leaseSeconds} * interval '1 second'
      where id = any (array(select id from due)) returning *
    )
    select ${domainFields} from taken as domains ${livingIdentity}`.execute(tx)
  return rows
}

export async function lockCheckedDomain(
  tx: Tx,
  projectId: number,
  id: number,
): Promise<CheckedDomain | undefined> {
  const { rows } = await sql<CheckedDomain>`
    select ${domainFields} from control.domains ${livingIdentity}
    where domains.project_id = ${projectId} and domains.id = ${id} for update of domains`.execute(tx)
  return rows[0]
}

export const listRecords = (tx: ReadTx, projectId: number, domainId: number): Promise<CheckedRecord[]> =>
  tx
    .selectFrom('control.dns_records')
    .select(['id', 'purpose', 'type', 'name', 'value', 'status'])
    .where('project_id', '=', projectId)
    .where('domain_id', '=', domainId)
    .orderBy('id')
    .execute() as Promise<CheckedRecord[]>

export async function writeStatuses(
  tx: Tx,
  projectId: number,
  statuses: readonly { id: number; status: DnsRecordView['status'] }[],
): Promise<void> {
  await sql`
    update control.dns_records as records set status = found.status, checked_at = postern.now()
      from unnest(${statuses.map(({ id }) => id)}::bigint[], ${statuses.map(({ status }) => status)}::text[])
           as found (id, status)
     where records.project_id = ${projectId} and records.id = found.id`.execute(tx)
}

export interface CheckOutcome {
  status: CheckedDomain['status']
  result: 'complete' | 'incomplete' | 'unknown'
  complaint: string | null
  delaySeconds: number | null
  isUnanswered: boolean
  warnedDays: number
}

/**
 * A check requested while this one ran (`next_check_at` differs from the lease) stays due, because this check's results may
 * predate the request.
 */
export async function writeOutcome(
  tx: Tx,
  { project_id, id, due_at: leasedUntil }: CheckedDomain,
  { status, result, complaint, delaySeconds, isUnanswered, warnedDays }: CheckOutcome,
): Promise<void> {
  await sql`
    update control.domains set
      status = ${status},
      verified_at = case when ${status} <> 'verified' then null
                         when status = 'verified' then verified_at else postern.now() end,
      last_checked_at = postern.now(),
      last_check_error = ${complaint},
      next_check_at = case when next_check_at = ${leasedUntil}::timestamptz
                           then postern.now() + ${delaySeconds}::int * interval '1 second'
                           else next_check_at end,
      failing_since = case ${result} when 'complete' then null
                                     when 'incomplete' then coalesce(failing_since, postern.now())
                                     else failing_since end,
      unanswered_since = case when ${isUnanswered} then coalesce(unanswered_since, postern.now()) end,
      unanswered_warned_days = ${warnedDays},
      checks_failed = case ${result} when 'complete' then 0 else checks_failed + 1 end
    where project_id = ${project_id} and id = ${id}`.execute(tx)
}

/** Serializes decisions about this name until the transaction ends. */
export async function lockName(tx: Tx, name: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 4170951))`.execute(tx)
}
