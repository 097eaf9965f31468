import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { DnsRecordView, MtaProviderName } from './wire.ts'

export interface CheckedRecord extends DnsRecordView {
  id: number
}

/** What a look is about, as it stood when the look began. */
export interface Subject {
  id: number
  project_id: number
  name: string
  mta_provider: MtaProviderName
  status: 'pending' | 'verified' | 'failed'
  checks_failed: number
  failing_ms: number | null
  unanswered_ms: number | null
  unanswered_warned_days: number
  /** Moved by every edit and every rotation. */
  version: number
  /** To the microsecond; whoever looks has the domain until then. */
  due_at: string
  identity_id: number
  identity_state: string
  /** Where the provider has the identity. */
  account: string | null
  region: string | null
}

const subjectFields = sql`
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

/**
 * Takes those that are due, so that nobody else looks at them; a process that dies meanwhile has lost them for the
 * lease only.
 */
export async function claimDue(
  tx: Tx,
  {
    limit,
    leaseSeconds,
    only,
  }: { limit: number; leaseSeconds: number; only?: { projectId: number; id: number } },
): Promise<Subject[]> {
  const which = only ? sql`and project_id = ${only.projectId} and id = ${only.id}` : sql``
  const { rows } = await sql<Subject>`
    with due as (
      select id from control.domains where next_check_at <= postern.now() ${which}
      order by next_check_at limit ${limit} for update skip locked
    ), taken as (
      update control.domains set next_check_at = postern.now() + ${leaseSeconds} * interval '1 second'
      where id = any (array(select id from due)) returning *
    )
    select ${subjectFields} from taken as domains ${livingIdentity}`.execute(tx)
  return rows
}

export async function lockSubject(tx: Tx, projectId: number, id: number): Promise<Subject | undefined> {
  const { rows } = await sql<Subject>`
    select ${subjectFields} from control.domains ${livingIdentity}
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
    update control.dns_records as records set status = seen.status, checked_at = postern.now()
      from unnest(${statuses.map(({ id }) => id)}::bigint[], ${statuses.map(({ status }) => status)}::text[])
           as seen (id, status)
     where records.project_id = ${projectId} and records.id = seen.id`.execute(tx)
}

export interface CheckOutcome {
  status: Subject['status']
  result: 'complete' | 'incomplete' | 'unknown'
  complaint: string | null
  delaySeconds: number | null
  isUnanswered: boolean
  warnedDays: number
}

/** One who asked for a look while this one was taken has it still: what it found may be from before. */
export async function writeOutcome(
  tx: Tx,
  { project_id, id, due_at: leasedUntil }: Subject,
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

/** Until the transaction ends, nobody else decides about this name. */
export async function lockName(tx: Tx, name: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 4170951))`.execute(tx)
}
