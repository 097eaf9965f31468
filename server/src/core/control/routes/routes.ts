import { isDeepStrictEqual } from 'node:util'
import type { Static } from 'typebox'
import { addressText, lowerCased, readAddress } from '../../../formats/address.ts'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { isPublicName } from '../../../platform/net/public-host.ts'
import {
  countActiveAddressRoutes,
  findById,
  findByMatch,
  findEndpoint,
  findRoutedDomain,
  findRoutedDomainByName,
  insert,
  listByProject,
  lock,
  type RoutedDomain,
  type RouteRow,
  remove,
  shareDomain,
  shareEndpoint,
  update,
} from './routes.sql.ts'
import type { Route, RouteConfig } from './wire.ts'

export type { RoutedDomain, RouteRow }
export { countActiveAddressRoutes, findByMatch, findEndpoint, findRoutedDomain, findRoutedDomainByName }

type View = Static<typeof Route>

/** A route in wire format. */
export const routeView = (row: RouteRow): View => ({
  id: row.id,
  project_id: row.project_id,
  domain_id: row.domain_id,
  match: row.match as View['match'],
  address: row.address,
  action: row.action as View['action'],
  endpoint_id: row.endpoint_id,
  forward_to: row.forward_to,
  forward_confirmed_at: row.forward_confirmed_at?.toISOString() ?? null,
  is_active: row.is_active,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

/**
 * The editable fields. They are also stored in the audit log, because the log must show where mail was delivered at any
 * time.
 */
export const routeConfig = (row: RouteRow): RouteConfig => ({
  domain_id: row.domain_id,
  match: row.match as View['match'],
  address: row.address,
  action: row.action as View['action'],
  endpoint_id: row.endpoint_id,
  forward_to: row.forward_to,
  is_active: row.is_active,
})

const existing = (row: RouteRow | undefined, projectId: number, id: number): RouteRow => {
  if (!row) throw new PosternError('not_found', `There is no route ${id} in project ${projectId}.`)
  return row
}

/** `domainId`, here and below: the only domain in the project that the caller can access, or null for all domains. */
export const findRoute = async (
  tx: ReadTx,
  projectId: number,
  id: number,
  domainId: number | null = null,
): Promise<RouteRow> => existing(await findById(tx, projectId, id, domainId), projectId, id)

export const lockRoute = async (
  tx: Tx,
  projectId: number,
  id: number,
  domainId: number | null = null,
): Promise<RouteRow> => existing(await lock(tx, projectId, id, domainId), projectId, id)

/** Newest first. `beforeId` is the last id of the previous page. */
export const listRoutes = (
  tx: ReadTx,
  projectId: number,
  { limit, beforeId }: { limit: number; beforeId?: number | undefined },
  domainId: number | null = null,
): Promise<RouteRow[]> => listByProject(tx, projectId, limit, beforeId, domainId)

/**
 * The caller must hold the project's lock, here and below: the check for another route with the same address precedes the
 * write, and a rename of the domain changes its routes.
 */
export async function createRoute(
  tx: Tx,
  projectId: number,
  config: RouteConfig,
  domainId: number | null = null,
): Promise<RouteRow> {
  const wanted = await normalised(tx, projectId, config, domainId)
  await refuseSecond(tx, projectId, wanted)
  return insert(tx, projectId, wanted)
}

/** Returns `before` if nothing changes. */
export async function editRoute(
  tx: Tx,
  before: RouteRow,
  config: RouteConfig,
  domainId: number | null = null,
): Promise<RouteRow> {
  const wanted = await normalised(tx, before.project_id, config, domainId)
  if (isDeepStrictEqual(wanted, routeConfig(before))) return before
  await refuseSecond(tx, before.project_id, wanted, before.id)
  return update(tx, before, wanted)
}

export const deleteRoute = remove

async function normalised(
  tx: Tx,
  projectId: number,
  config: RouteConfig,
  domainId: number | null,
): Promise<RouteConfig> {
  refuseMixture(config)
  const { domain_id, match, action, endpoint_id, is_active } = config
  const isOutside = domainId !== null && domainId !== domain_id
  const domain = isOutside ? undefined : await shareDomain(tx, projectId, domain_id)
  if (!domain) throw absent('domain_id', 'a domain', projectId)
  const address = config.address === null ? null : routedAddress(config.address, domain)
  const forward_to = config.forward_to === null ? null : forwardAddress(config.forward_to, domain)
  if (endpoint_id !== null && !(await shareEndpoint(tx, projectId, endpoint_id))) {
    throw absent('endpoint_id', 'an endpoint', projectId)
  }
  return { domain_id, match, address, action, endpoint_id, forward_to, is_active }
}

/** Each of these fields is required for one value of another field, and null otherwise. */
function refuseMixture({ match, address, action, endpoint_id, forward_to }: RouteConfig): void {
  const pairs = [
    { field: 'address', value: address, chooser: 'match', chosen: match, owner: 'address' },
    { field: 'endpoint_id', value: endpoint_id, chooser: 'action', chosen: action, owner: 'endpoint' },
    { field: 'forward_to', value: forward_to, chooser: 'action', chosen: action, owner: 'forward' },
  ] as const
  const faults = pairs.flatMap(({ field, value, chooser, chosen, owner }) => {
    if ((chosen === owner) === (value !== null)) return []
    return chosen === owner
      ? [`"${field}" must not be null when "${chooser}" is "${owner}"`]
      : [`"${field}" must be null when "${chooser}" is "${chosen}"`]
  })
  if (faults.length > 0) throw new PosternError('validation_failed', `${faults.join('; ')}.`)
}

function routedAddress(text: string, domain: { id: number; name: string }): string {
  const address = wellFormed(text, 'address')
  if (address.domain !== domain.name) {
    throw new PosternError(
      'validation_failed',
      `"address" must be under ${domain.name}, the name of domain ${domain.id}.`,
    )
  }
  return addressText(lowerCased(address))
}

/** Longer loops (through another domain or another provider) are detected when the mail is received. */
function forwardAddress(text: string, domain: { name: string }): string {
  const address = wellFormed(text, 'forward_to')
  if (address.domain === domain.name) {
    throw new PosternError(
      'validation_failed',
      `"forward_to" is an address of ${domain.name} itself, so the mail would loop. Choose an address of another domain.`,
    )
  }
  // The MTA checks the MX at delivery: docs/operations/mta.md.
  if (!isPublicName(address.domain)) {
    throw new PosternError(
      'validation_failed',
      `"forward_to" is at ${address.domain}, which is not a public domain. Choose an address of a public domain.`,
    )
  }
  return addressText(address)
}

function wellFormed(text: string, field: string) {
  const address = readAddress(text)
  if ('fault' in address) throw new PosternError('validation_failed', `"${field}" ${address.fault}.`)
  return address
}

/** The error is the same for another project's resource as for a resource that does not exist. */
const absent = (field: string, noun: string, projectId: number): PosternError =>
  new PosternError('validation_failed', `"${field}" is not ${noun} of project ${projectId}.`)

async function refuseSecond(
  tx: Tx,
  projectId: number,
  { domain_id, address }: RouteConfig,
  except?: number,
): Promise<void> {
  const other = await findByMatch(tx, projectId, domain_id, address)
  if (!other || other.id === except) return
  const what =
    address === null ? `Domain ${domain_id} already has a catch-all` : `${address} already has a route`
  throw new PosternError('already_exists', `${what}: route ${other.id}. Edit or delete that route first.`)
}
