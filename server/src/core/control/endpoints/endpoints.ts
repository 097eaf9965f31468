import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { NetGuard } from '../../../platform/net/net-guard.ts'
import { publishToMail } from '../../outbox/outbox.ts'
import { chosenEvents, type EventType } from '../../shared/events.ts'
import { plainName } from '../../shared/text.ts'
import type { Vault } from '../secrets/vault.ts'
import {
  type EndpointRow,
  findById,
  insert,
  listByProject,
  listRouteIds,
  lock,
  remove,
  replaceSecret,
  type Secret,
  takeId,
  updateConfiguration,
} from './endpoints.sql.ts'
import { isThere } from './health.sql.ts'
import { endpointUrl } from './url.ts'

export type { EndpointRow }

export interface EndpointDeps {
  vault: Vault
  /** Decides which addresses endpoints can use. */
  guard: Pick<NetGuard, 'refusalOf'>
}

/** The editable configuration of an endpoint, always sent as a whole. */
export interface EndpointConfig {
  name: string
  url: string
  events: string[]
  is_active: boolean
}

/** An endpoint in wire format. */
export function endpointView(row: EndpointRow) {
  return {
    id: row.id,
    project_id: row.project_id,
    name: row.name,
    url: row.url,
    events: row.events as EventType[],
    is_active: row.is_active,
    disabled_reason: row.disabled_reason,
    secret_hint: row.secret_hint,
    secret_rotated_at: row.secret_rotated_at?.toISOString() ?? null,
    last_success_at: row.last_success_at?.toISOString() ?? null,
    consecutive_failures: row.consecutive_failures,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}

export async function findEndpoint(tx: ReadTx, projectId: number, id: number): Promise<EndpointRow> {
  return (await findById(tx, projectId, id)) ?? missing(projectId, id)
}

/** Only checks existence, so it also works with the mail plane's role, which cannot read all columns. */
export async function requireEndpoint(tx: ReadTx, projectId: number, id: number): Promise<void> {
  if (!(await isThere(tx, projectId, id))) missing(projectId, id)
}

/** To change an endpoint, lock it first and pass the locked row to the functions below. */
export async function lockEndpoint(tx: Tx, projectId: number, id: number): Promise<EndpointRow> {
  return (await lock(tx, projectId, id)) ?? missing(projectId, id)
}

/** Newest first. `beforeId` is the last id of the previous page. */
export const listEndpoints = (
  tx: ReadTx,
  projectId: number,
  { limit, beforeId }: { limit: number; beforeId?: number | undefined },
): Promise<EndpointRow[]> => listByProject(tx, projectId, limit, beforeId)

/** Returns the secret. Only this function and `rotateEndpointSecret` reveal it. */
export async function createEndpoint(
  tx: Tx,
  { vault, guard }: EndpointDeps,
  projectId: number,
  config: EndpointConfig,
): Promise<{ row: EndpointRow; secret: string }> {
  const wanted = { ...normalised(config), url: endpointUrl(config.url, guard) }
  const id = await takeId(tx)
  const { secret, stored } = await newSecret(tx, vault, projectId, id)
  return { row: await insert(tx, projectId, id, wanted, stored), secret }
}

/**
 * Returns `before` if nothing changes. An unchanged URL is not checked again, so an endpoint whose URL the operator no
 * longer allows can still be disabled.
 */
export async function editEndpoint(
  tx: Tx,
  { guard }: Pick<EndpointDeps, 'guard'>,
  before: EndpointRow,
  config: EndpointConfig,
): Promise<EndpointRow> {
  const { name, url, events, is_active } = before
  const wanted = { ...normalised(config), url: config.url === url ? url : endpointUrl(config.url, guard) }
  if (isDeepStrictEqual(wanted, { name, url, events, is_active })) return before
  // The reason for automatically disabling the endpoint is obsolete once a person has enabled it.
  const disabled_reason = wanted.is_active === is_active ? before.disabled_reason : null
  const after = await updateConfiguration(tx, before, { ...wanted, disabled_reason })
  if (after.is_active && !is_active) {
    await publishToMail(tx, after.project_id, 'endpoint.enabled', { endpoint_id: after.id })
  }
  return after
}

/** Overwrites the old secret, so nothing can be signed with it after the commit. */
export async function rotateEndpointSecret(
  tx: Tx,
  vault: Vault,
  before: EndpointRow,
): Promise<{ row: EndpointRow; secret: string }> {
  const { secret, stored } = await newSecret(tx, vault, before.project_id, before.id)
  return { row: await replaceSecret(tx, before, stored), secret }
}

const maxRoutesNamed = 10

/** The routes that deliver inbound mail to the endpoint, as a list in a sentence; undefined if there are none. */
export async function namedRoutes(tx: ReadTx, { project_id, id }: EndpointRow): Promise<string | undefined> {
  const routes = await listRouteIds(tx, project_id, id, maxRoutesNamed + 1)
  if (routes.length === 0) return undefined
  return `${routes.slice(0, maxRoutesNamed).join(', ')}${routes.length > maxRoutesNamed ? ' and more' : ''}`
}

/** A concurrently created route waits for the lock on the endpoint and then fails. */
export async function deleteEndpoint(tx: Tx, before: EndpointRow): Promise<void> {
  const { project_id, id } = before
  const routes = await namedRoutes(tx, before)
  if (routes !== undefined) {
    throw new PosternError(
      'in_use',
      `Endpoint ${id} receives mail from these routes: ${routes}. Change or delete the routes first.`,
    )
  }
  await remove(tx, project_id, id)
  await publishToMail(tx, project_id, 'endpoint.deleted', { endpoint_id: id })
}

const normalised = ({ name, events, is_active }: EndpointConfig): Omit<EndpointConfig, 'url'> => ({
  name: plainName(name, 'name'),
  events: chosenEvents(events),
  is_active,
})

/** In the format of Standard Webhooks, https://www.standardwebhooks.com, so receivers' libraries accept it unchanged. */
async function newSecret(
  tx: Tx,
  vault: Vault,
  projectId: number,
  id: number,
): Promise<{ secret: string; stored: Secret }> {
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const location = { table: 'control.endpoints', column: 'encrypted_secret', rowId: id }
  const encrypted_secret = await vault.seal(tx, projectId, location, secret)
  return { secret, stored: { encrypted_secret, secret_hint: hintOf(secret) } }
}

/** The last four characters before the padding. The padding is the same in every secret. */
const hintOf = (secret: string): string => secret.replace(/=+$/, '').slice(-4)

function missing(projectId: number, id: number): never {
  throw new PosternError('not_found', `There is no endpoint ${id} in project ${projectId}.`)
}

/** The endpoint as recorded in the audit log, with only the secret's hint. */
export const endpointConfig = ({ name, url, events, is_active, secret_hint }: EndpointRow) => ({
  name,
  url,
  events,
  is_active,
  secret_hint,
})
