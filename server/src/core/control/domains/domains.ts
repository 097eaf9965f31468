/**
 * Domains. The caller of every change holds the project's lock, so the count against a limit is exact and no route is
 * created or moved while a name changes.
 *
 * Nothing here calls a provider. An operation writes the desired state and a job in its own transaction; the job
 * (reconcile-identities.ts) calls the provider after the commit. DKIM rotation is in dkim-rotation.ts.
 */

import { randomBytes } from 'node:crypto'
import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { JobSender } from '../../../platform/jobs/jobs.ts'
import type { ProviderAccount } from '../../../providers/sending-identities.ts'
import { countCap, countText } from '../../shared/counts.ts'
import type { ProjectRow } from '../projects/projects.ts'
import type { Vault } from '../secrets/vault.ts'
import { moveAddressRoutes, type RouteChoice, type RouteMove } from './address-routes.ts'
import type { DkimKeyPool, OfferedKeyPair } from './dkim-key-pool.ts'
import { storeDkimKey } from './dkim-keys.ts'
import {
  checkNow,
  count,
  countQueued,
  type DomainRow,
  deleteRecords,
  find,
  hasName,
  insert,
  insertRecords,
  list,
  liveIdentities,
  lock,
  reclaim,
  remove,
  users,
  verifiedHolder,
} from './domains.sql.ts'
import { insertLive, lockByDomain, retire } from './identities.sql.ts'
import { domainName } from './name.ts'
import { type RecordHosts, wantedRecords } from './records.ts'
import type { Domain, MtaProviderName } from './wire.ts'

export type { DomainRow, RouteChoice, RouteMove }

export interface DomainDeps {
  vault: Vault
  jobs: JobSender
  setup: DomainSetup
  pairs: DkimKeyPool
}

/** The dependencies of one request. The request's DKIM key pair, if needed, was generated before any lock was acquired. */
export interface KeyedDeps extends DomainDeps {
  pair: OfferedKeyPair
}

/** The providers and hosts of this installation. */
export interface DomainSetup extends RecordHosts {
  accounts: { service: ProviderAccount; ses: ProviderAccount | undefined }
}

export const domainView = (row: DomainRow): Static<typeof Domain> => ({
  id: row.id,
  project_id: row.project_id,
  name: row.name,
  mta_provider: row.mta_provider as MtaProviderName,
  status: row.status as Static<typeof Domain>['status'],
  identity: {
    id: row.identity.id,
    provider: row.identity.provider,
    state: row.identity.state as Static<typeof Domain>['identity']['state'],
    selector: row.identity.selector,
    registered_at: row.identity.registered_at && new Date(row.identity.registered_at).toISOString(),
  },
  dns_records: row.dns_records,
  verified_at: row.verified_at?.toISOString() ?? null,
  last_checked_at: row.last_checked_at?.toISOString() ?? null,
  last_check_error: row.last_check_error,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

/** The fields that the audit stores. */
export const domainRecord = ({ name, mta_provider, status, identity }: DomainRow) => ({
  name,
  mta_provider,
  status,
  identity_id: identity.id,
  selector: identity.selector,
})

/** `boundTo`: the only domain in the project that the caller can access, or null for all domains. */
export async function findDomain(
  tx: ReadTx,
  projectId: number,
  id: number,
  boundTo: number | null = null,
): Promise<DomainRow> {
  if (boundTo !== null && boundTo !== id) missing(projectId, id)
  return (await find(tx, projectId, id)) ?? missing(projectId, id)
}

/** The caller must hold the project's lock. */
export async function lockDomain(
  tx: Tx,
  projectId: number,
  id: number,
  boundTo: number | null = null,
): Promise<DomainRow> {
  if (boundTo !== null && boundTo !== id) missing(projectId, id)
  return (await lock(tx, projectId, id)) ?? missing(projectId, id)
}

export const listDomains = list

export async function createDomain(
  tx: Tx,
  deps: KeyedDeps,
  project: ProjectRow,
  wanted: { name: string; mta_provider?: MtaProviderName },
): Promise<{ row: DomainRow; count: number; keysToday: number | null }> {
  const name = domainName(wanted.name)
  const mta_provider = wanted.mta_provider ?? (project.allow_service_mta ? 'service' : 'ses')
  const account = offeredAccount(deps.setup, project, mta_provider)
  const claim = { name, mta_provider, ownership_token: newToken() }
  const id = await insert(tx, project.id, claim)
  if (id === undefined) throw taken(name)
  const keysToday = await registerIdentity(tx, deps, project.id, id, claim, account)
  return { row: await findDomain(tx, project.id, id), count: await count(tx, project.id), keysToday }
}

/**
 * Every edit, even with unchanged values, registers a replacement identity and restarts verification. The previous identity
 * starts to retire: no new mail is accepted for it, but mail accepted earlier is still signed with it.
 */
export async function editDomain(
  tx: Tx,
  deps: KeyedDeps,
  project: ProjectRow,
  before: DomainRow,
  { name: newName, mta_provider, ...choice }: { name?: string; mta_provider?: MtaProviderName } & RouteChoice,
): Promise<{ row: DomainRow; moves: RouteMove[]; keysToday: number | null }> {
  if (newName === undefined && mta_provider === undefined) {
    throw new PosternError('validation_failed', 'Set a new "name", a new "mta_provider", or both.')
  }
  const name = newName === undefined ? before.name : domainName(newName)
  const provider = mta_provider ?? (before.mta_provider as MtaProviderName)
  const account = offeredAccount(deps.setup, project, provider)
  if (await hasName(tx, project.id, name, before.id)) throw taken(name)
  const moves = await moveAddressRoutes(tx, before, name, choice)

  const claim = { name, mta_provider: provider, ownership_token: newToken() }
  await reclaim(tx, before, claim)
  await deleteRecords(tx, project.id, before.id)
  await retireIdentity(tx, deps, before)
  const keysToday = await registerIdentity(tx, deps, project.id, before.id, claim, account)
  return { row: await findDomain(tx, project.id, before.id), moves, keysToday }
}

export async function deleteDomain(tx: Tx, deps: DomainDeps, before: DomainRow): Promise<void> {
  const { routes, keys } = await users(tx, before, maxNamed + 1)
  if (routes.length + keys.length > 0) {
    const parts = [
      ...(routes.length > 0 ? [`routes ${some(routes)}`] : []),
      ...(keys.length > 0 ? [`API keys ${some(keys)}`] : []),
    ]
    throw new PosternError(
      'in_use',
      `Domain ${before.id} is used by ${parts.join(' and ')}. Delete them or change their domain first.`,
    )
  }
  await lockByDomain(tx, before.project_id, before.id)
  await retireIdentity(tx, deps, before)
  await remove(tx, before)
}

/** Queues the check as a job, because no transaction may wait for DNS. */
export async function requestCheck(tx: Tx, { jobs }: DomainDeps, before: DomainRow): Promise<DomainRow> {
  const { project_id, id, name } = before
  const holder = await verifiedHolder(tx, name, project_id)
  if (holder) {
    throw new PosternError(
      'domain_claimed',
      `${name} is already verified in project ${holder.project_id} (domain ${holder.id}). ` +
        "Delete or rename it there first, or remove that project's ownership record from DNS.",
    )
  }
  await checkNow(tx, before)
  await jobs.send(tx, 'domains.check', { project_id, domain_id: id })
  return findDomain(tx, project_id, id)
}

/** Another project in which the name is verified. Only for administrators. */
export const otherHolder = verifiedHolder

/** The routes and API keys that refer to the domain. */
export const domainUsers = users

/**
 * Runs in the mail database. Returns, as text, the number of queued messages that were accepted for the domain's live
 * identity.
 */
export async function queuedUnder(mail: ReadTx, projectId: number, domainId: number): Promise<string> {
  const identities = await liveIdentities(mail, projectId, domainId)
  return countText(await countQueued(mail, projectId, identities, countCap + 1))
}

/** Returns how many DKIM keys the project has created today, or null if the provider creates them. */
async function registerIdentity(
  tx: Tx,
  { vault, jobs, setup, pair }: KeyedDeps,
  projectId: number,
  domainId: number,
  { name, mta_provider: provider, ownership_token: token }: Parameters<typeof insert>[2],
  account: ProviderAccount,
): Promise<number | null> {
  const identityId = await insertLive(tx, projectId, domainId, name, provider, account)
  const key =
    provider === 'service' ? await storeDkimKey(tx, vault, projectId, identityId, pair.use()) : undefined
  await insertRecords(tx, projectId, domainId, wantedRecords({ name, token, key }, setup))
  await jobs.send(tx, 'identities.reconcile', { identity_id: identityId })
  return key?.keysToday ?? null
}

async function retireIdentity(
  tx: Tx,
  { jobs }: DomainDeps,
  { project_id, identity }: DomainRow,
): Promise<void> {
  await retire(tx, project_id, identity.id)
  await jobs.send(tx, 'identities.reconcile', { identity_id: identity.id })
}

function offeredAccount(
  { accounts }: DomainSetup,
  { id, allow_service_mta }: ProjectRow,
  provider: MtaProviderName,
): ProviderAccount {
  if (provider === 'service' && !allow_service_mta) {
    throw new PosternError(
      'provider_not_allowed',
      `Project ${id} is not allowed to use the provider "service". Ask an administrator to set "allow_service_mta" for the project, or choose another provider.`,
    )
  }
  const account = accounts[provider]
  if (!account) {
    throw new PosternError(
      'provider_not_allowed',
      `This installation does not offer the provider "${provider}". Choose another provider, or ask the operator to configure it.`,
    )
  }
  return account
}

const newToken = (): string => randomBytes(16).toString('hex')

const maxNamed = 10

const some = (ids: readonly number[]): string =>
  ids.slice(0, maxNamed).join(', ') + (ids.length > maxNamed ? ' and more' : '')

const taken = (name: string): PosternError =>
  new PosternError('already_exists', `This project already has the domain ${name}.`)

function missing(projectId: number, id: number): never {
  throw new PosternError('not_found', `There is no domain ${id} in project ${projectId}.`)
}
