import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { ProviderAccount } from '../../../providers/sending-identities.ts'
import type { MtaProviderName } from './wire.ts'

export type IdentityRow = Selectable<Schema['control.identities']>

/** Inserts the domain's new live identity. The previous identity must already be retiring. */
export async function insertLive(
  tx: Tx,
  projectId: number,
  domainId: number,
  name: string,
  provider: MtaProviderName,
  { account, region }: ProviderAccount,
): Promise<number> {
  const { id } = await tx
    .insertInto('control.identities')
    .values({ project_id: projectId, domain_id: domainId, name, provider, account, region })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

export async function retire(tx: Tx, projectId: number, id: number): Promise<void> {
  await tx
    .updateTable('control.identities')
    .set({
      state: 'retiring',
      retiring_at: sql<Date>`postern.now()`,
      reconcile_at: sql<Date>`postern.now()`,
      attempts: 0,
      last_error: null,
      updated_at: sql<Date>`postern.now()`,
    })
    .where('project_id', '=', projectId)
    .where('id', '=', id)
    .execute()
}

/** Identifies an identity at the provider, across projects. */
export interface IdentityKey extends ProviderAccount {
  provider: MtaProviderName
  name: string
}

export const findKey = (tx: ReadTx, id: number): Promise<IdentityKey | undefined> =>
  tx
    .selectFrom('control.identities')
    .select(['provider', 'name', 'account', 'region'])
    .where('id', '=', id)
    .executeTakeFirst() as Promise<IdentityKey | undefined>

const ofKey = (tx: ReadTx, { provider, name, account, region }: IdentityKey) =>
  tx
    .selectFrom('control.identities')
    .where('name', '=', name)
    .where('provider', '=', provider)
    .where(sql<boolean>`account is not distinct from ${account} and region is not distinct from ${region}`)
    .where('state', '<>', 'retired')

export const listRetiring = (
  tx: ReadTx,
  key: IdentityKey,
): Promise<Pick<IdentityRow, 'id' | 'project_id' | 'name'>[]> =>
  ofKey(tx, key)
    .select(['id', 'project_id', 'name'])
    .where('retiring_at', 'is not', null)
    .orderBy('id')
    .execute()

/** As replicated to the mail database. An identity that is missing there has not been replicated yet. */
export async function isRetiring(mail: ReadTx, projectId: number, id: number): Promise<boolean> {
  const row = await mail
    .selectFrom('control.identities')
    .select('retiring_at')
    .where('project_id', '=', projectId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row !== undefined && row.retiring_at !== null
}

/** Locks all identities with this key that are not retired, in a fixed order. */
export const lockByKey = (tx: Tx, key: IdentityKey): Promise<LockedIdentity[]> =>
  ofKey(tx, key)
    .selectAll()
    .select(sql<boolean>`coalesce(leased_until > postern.now(), false)`.as('is_leased'))
    .orderBy('id')
    .forUpdate()
    .execute()

/** Locked before the identities, in the same order as an edit, to avoid deadlocks. */
export async function lockDomainsOf(tx: Tx, key: IdentityKey): Promise<number[]> {
  const living = ofKey(tx, key).where('retiring_at', 'is', null)
  const rows = await tx
    .selectFrom('control.domains')
    .select('id')
    .where('id', 'in', living.select(sql<number>`domain_id`.as('domain_id')))
    .orderBy('id')
    .forNoKeyUpdate()
    .execute()
  return rows.map(({ id }) => id)
}

/** In the order of `lockByKey`, because a domain can have had the same name more than once. */
export async function lockByDomain(tx: Tx, projectId: number, domainId: number): Promise<void> {
  await tx
    .selectFrom('control.identities')
    .select('id')
    .where('project_id', '=', projectId)
    .where('domain_id', '=', domainId)
    .where('state', '<>', 'retired')
    .orderBy('id')
    .forUpdate()
    .execute()
}

export type LockedIdentity = IdentityRow & { is_leased: boolean }

/** Returns the number of the lease: a fencing token that is higher than all earlier ones. */
export async function lease(tx: Tx, ids: readonly number[], seconds: number): Promise<number> {
  const { rows } = await sql<{ no: number }>`select nextval('control.identity_lease_no') as no`.execute(tx)
  const no = rows[0]?.no ?? 0
  await update(
    tx,
    ids,
    sql`leased_until = postern.now() + ${seconds} * interval '1 second', lease_no = ${no}`,
  )
  return no
}

/**
 * Whether the lease with this number is the latest lease on these identities. Identities that an edit has added since then
 * have no number and count as covered by this lease. If no identity has the number, another worker has finished and all
 * leased identities are retired.
 */
export const holdsLease = (all: readonly LockedIdentity[], no: number): boolean =>
  all.some(({ lease_no }) => lease_no === no) && all.every(({ lease_no }) => lease_no <= no)

// Each of these statements also releases the lease with the specified number, and writes nothing if a later lease exists.
// Writing a row twice in a transaction would check its foreign keys again. That check locks the domain after the identity,
// so it could deadlock with an edit that waits for the identity.

export const release = (tx: Tx, ids: readonly number[], leaseNo: number): Promise<number> =>
  update(tx, ids, sql`leased_until = null`, leaseNo)

export const markRegistered = (tx: Tx, ids: readonly number[], leaseNo: number): Promise<number> =>
  update(
    tx,
    ids,
    sql`state = 'registered', registered_at = coalesce(registered_at, postern.now()), last_error = null,
        reconcile_at = null, attempts = 0, leased_until = null`,
    leaseNo,
  )

export const markRetired = (tx: Tx, ids: readonly number[], leaseNo: number): Promise<number> =>
  update(
    tx,
    ids,
    sql`state = 'retired', retired_at = postern.now(), last_error = null, reconcile_at = null, leased_until = null`,
    leaseNo,
  )

export const markFailed = (
  tx: Tx,
  ids: readonly number[],
  leaseNo: number,
  error: string,
  delaySeconds: number,
): Promise<number> =>
  update(
    tx,
    ids,
    sql`state = 'error', last_error = ${error}, attempts = attempts + 1, leased_until = null,
        reconcile_at = postern.now() + ${delaySeconds} * interval '1 second'`,
    leaseNo,
  )

/**
 * Postpones the retirement of identities that have or may have queued mail. A worker that does not hold a lease on them
 * passes no number.
 */
export const postpone = (
  tx: Tx,
  ids: readonly number[],
  delaySeconds: number,
  leaseNo?: number,
): Promise<number> =>
  update(
    tx,
    ids,
    sql`reconcile_at = postern.now() + ${delaySeconds} * interval '1 second', leased_until = null`,
    leaseNo,
  )

/** The provider has lost these identities. A running reconciliation continues. */
export const markLost = (tx: Tx, ids: readonly number[]): Promise<number> =>
  update(tx, ids, sql`state = 'registering', reconcile_at = postern.now(), attempts = 0`)

/** Invalidates every lease on these identities, because the results of the workers that hold them are obsolete. */
export const startAgain = (tx: Tx, ids: readonly number[]): Promise<number> =>
  update(
    tx,
    ids,
    sql`state = 'registering', reconcile_at = postern.now(), attempts = 0, leased_until = null,
        lease_no = nextval('control.identity_lease_no')`,
  )

/** Returns the number of updated rows. */
async function update(
  tx: Tx,
  ids: readonly number[],
  assignments: ReturnType<typeof sql>,
  leaseNo?: number,
): Promise<number> {
  if (ids.length === 0) return 0
  const isUnfenced = leaseNo === undefined ? sql`true` : sql`lease_no <= ${leaseNo}`
  const { numAffectedRows } = await sql`
    update control.identities set ${assignments}, updated_at = postern.now()
     where id = any(${ids}) and ${isUnfenced}`.execute(tx)
  return Number(numAffectedRows ?? 0)
}

/**
 * Runs in the mail database. A transaction that accepts mail holds this lock in shared mode from before its checks until its
 * commit. Once the exclusive lock is acquired, all acceptances for an identity that was already retiring are visible.
 */
export async function awaitAcceptance(mail: ReadTx, projectId: number, name: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(postern.acceptance_lock(${projectId}, ${name}))`.execute(mail)
}

/** Deletes the DKIM keys of retired identities. */
export async function deleteKeys(tx: Tx, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return
  await tx
    .deleteFrom('control.dkim_keys')
    .where('identity_id', 'in', [...ids])
    .execute()
}

export async function listDue(tx: ReadTx, limit: number): Promise<number[]> {
  const rows = await tx
    .selectFrom('control.identities')
    .select('id')
    .where('reconcile_at', '<=', sql<Date>`postern.now()`)
    // A customer waits for a registration, but not for a retirement.
    .orderBy(sql`retiring_at is not null`)
    .orderBy('reconcile_at')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}
