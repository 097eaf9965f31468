import { isDeepStrictEqual } from 'node:util'
import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { plainName } from '../../shared/text.ts'
import { timestampOf } from '../../shared/timestamp.ts'
import {
  type ApiKeyRow,
  type BoundDomain,
  type Configuration,
  findById,
  findDomain,
  insert,
  isFuture,
  type KeyCreator,
  listByProject,
  lock,
  remove,
  replaceSecret,
  shareDomain,
  updateConfiguration,
} from './api-keys.sql.ts'
import { allowedNetworks, shownNetwork } from './networks.ts'
import { type ApiKeyScope, chosenScopes } from './scopes.ts'
import { type ApiKeyMode, newSecret, storedForm } from './secret.ts'
import { type ApiKey, type ApiKeyConfig, maxNetworks } from './wire.ts'

export type { ApiKeyRow }

/** An API key in wire format. */
export const apiKeyView = (row: ApiKeyRow): Static<typeof ApiKey> => ({
  id: row.id,
  project_id: row.project_id,
  name: row.name,
  prefix: row.prefix,
  ...settings(row),
  last_used_at: row.last_used_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

const settings = (row: ApiKeyRow) => ({
  scopes: row.scopes as ApiKeyScope[],
  domain_id: row.domain_id,
  allowed_ips: row.allowed_ips.map(shownNetwork),
  expires_at: row.expires_at?.toISOString() ?? null,
  is_active: row.is_active,
})

/** The key as recorded in the audit log, with only the secret's prefix. */
export const apiKeyConfig = (row: ApiKeyRow) => ({
  name: row.name,
  mode: modeOf(row),
  prefix: row.prefix,
  ...settings(row),
})

export const modeOf = ({ is_test }: ApiKeyRow): ApiKeyMode => (is_test ? 'test' : 'live')

const existing = (row: ApiKeyRow | undefined, projectId: number, id: number): ApiKeyRow => {
  if (!row) throw new PosternError('not_found', `There is no API key ${id} in project ${projectId}.`)
  return row
}

export const findApiKey = async (tx: ReadTx, projectId: number, id: number): Promise<ApiKeyRow> =>
  existing(await findById(tx, projectId, id), projectId, id)

/** To change a key, lock its project, then the key, and pass the locked row to the functions below. */
export const lockApiKey = async (tx: Tx, projectId: number, id: number): Promise<ApiKeyRow> =>
  existing(await lock(tx, projectId, id), projectId, id)

/** Newest first. `beforeId` is the last id of the previous page. */
export const listApiKeys = (
  tx: ReadTx,
  projectId: number,
  { limit, beforeId }: { limit: number; beforeId?: number | undefined },
): Promise<ApiKeyRow[]> => listByProject(tx, projectId, limit, beforeId)

/** The domain that the key is bound to, or null for a key that can send from all domains. */
export const domainOfKey = async (
  tx: ReadTx,
  { project_id, domain_id }: ApiKeyRow,
): Promise<BoundDomain | null> =>
  domain_id === null ? null : ((await findDomain(tx, project_id, domain_id)) ?? null)

/** Returns the secret. It cannot be recovered later. Only this function and `rotateApiKey` return it. */
export async function createApiKey(
  tx: Tx,
  projectId: number,
  mode: ApiKeyMode,
  config: ApiKeyConfig,
  createdBy: KeyCreator,
): Promise<{ row: ApiKeyRow; secret: string }> {
  const wanted = await normalised(tx, projectId, config)
  const secret = newSecret(mode)
  return { row: await insert(tx, projectId, mode === 'test', wanted, storedForm(secret), createdBy), secret }
}

/** Returns `before` if nothing changes. */
export async function editApiKey(tx: Tx, before: ApiKeyRow, config: ApiKeyConfig): Promise<ApiKeyRow> {
  const wanted = await normalised(tx, before.project_id, config, before.expires_at)
  const { name, scopes, domain_id, expires_at, is_active } = before
  const allowed_ips = before.allowed_ips.map(shownNetwork)
  const current = { name, scopes, domain_id, allowed_ips, expires_at, is_active }
  return isDeepStrictEqual(wanted, current) ? before : updateConfiguration(tx, before, wanted)
}

/** Overwrites the old hash: the old secret is invalid after the commit. */
export async function rotateApiKey(tx: Tx, before: ApiKeyRow): Promise<{ row: ApiKeyRow; secret: string }> {
  const secret = newSecret(modeOf(before))
  return { row: await replaceSecret(tx, before, storedForm(secret)), secret }
}

export const deleteApiKey = remove

/** `knownExpiry` can be in the past, so an expired key can still be renamed. */
async function normalised(
  tx: Tx,
  projectId: number,
  config: ApiKeyConfig,
  knownExpiry: Date | null = null,
): Promise<Configuration> {
  const { domain_id, is_active } = config
  const name = plainName(config.name, 'name')
  const scopes = chosenScopes(config.scopes)
  if (config.allowed_ips.length > maxNetworks) {
    throw new PosternError('validation_failed', `"allowed_ips" must have at most ${maxNetworks} entries.`)
  }
  const allowed_ips = allowedNetworks(config.allowed_ips)
  const expires_at = config.expires_at === null ? null : timestampOf(config.expires_at, 'expires_at')
  if (
    expires_at !== null &&
    expires_at.getTime() !== knownExpiry?.getTime() &&
    !(await isFuture(tx, expires_at))
  ) {
    throw new PosternError(
      'validation_failed',
      '"expires_at" must be in the future. To disable the key now, set "is_active" to false or delete it.',
    )
  }
  if (domain_id !== null && !(await shareDomain(tx, projectId, domain_id))) {
    throw new PosternError('validation_failed', `"domain_id" must be a domain of project ${projectId}.`)
  }
  return { name, scopes, domain_id, allowed_ips, expires_at, is_active }
}
