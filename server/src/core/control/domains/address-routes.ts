import { addressText, lowerCased, readAddress } from '../../../formats/address.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type AddressRoute, listForwardingTo, lockAddressRoutes, readdress } from './address-routes.sql.ts'

/**
 * Handling of a domain's address routes when its name changes. The caller must specify what happens to every address
 * route. Catch-all routes follow the domain automatically.
 */
export interface RouteChoice {
  preserve_local_parts?: boolean
  route_replacements?: { route_id: number; address: string }[]
}

export interface RouteMove {
  id: number
  before: string
  after: string
}

export async function moveAddressRoutes(
  tx: Tx,
  { project_id, id, name }: { project_id: number; id: number; name: string },
  newName: string,
  { preserve_local_parts: isPreserving = false, route_replacements: replacements }: RouteChoice,
): Promise<RouteMove[]> {
  if (isPreserving && replacements !== undefined) {
    const about = named(await lockAddressRoutes(tx, project_id, id)) || 'none'
    throw unresolved(
      `"preserve_local_parts" and "route_replacements" cannot be combined. Choose one for these routes: ${about}.`,
    )
  }
  if (newName === name) {
    if (replacements === undefined || replacements.length === 0) return []
    throw unresolved('The name does not change, so neither do the routes: omit "route_replacements".')
  }
  await refuseCircles(tx, { project_id, id }, newName)
  const routes = await lockAddressRoutes(tx, project_id, id)
  if (routes.length > 0 && !isPreserving && replacements === undefined) {
    throw unresolved(
      `These routes have addresses under ${name}: ${named(routes)}. Set "preserve_local_parts": true to keep ` +
        `the local parts, or set "route_replacements" with an address under ${newName} for each route.`,
    )
  }
  const moves = isPreserving ? preserved(routes, newName) : replaced(routes, newName, replacements ?? [])
  if (moves.length > 0)
    await readdress(
      tx,
      project_id,
      moves.map(({ id, after }) => ({ id, address: after })),
    )
  return moves
}

/** Rejects routes that forward to the new name: after the change they would forward to themselves. */
async function refuseCircles(
  tx: Tx,
  { project_id, id }: { project_id: number; id: number },
  newName: string,
): Promise<void> {
  const circles = await listForwardingTo(tx, project_id, id, newName)
  if (circles.length === 0) return
  throw unresolved(
    `These routes forward to ${newName}, which would become their own domain: ${named(circles)}. Change or delete them first.`,
  )
}

function preserved(routes: readonly AddressRoute[], newName: string): RouteMove[] {
  const moves = routes.map(({ id, address }) => ({
    id,
    before: address,
    after: `${address.slice(0, address.lastIndexOf('@'))}@${newName}`,
  }))
  const tooLong = moves.filter(({ after }) => 'fault' in readAddress(after))
  if (tooLong.length === 0) return moves
  throw unresolved(
    `The addresses of these routes would be too long: ${named(tooLong.map(({ id, after }) => ({ id, address: after })))}. ` +
      'Set "route_replacements" instead, or delete them first.',
  )
}

function replaced(
  routes: readonly AddressRoute[],
  newName: string,
  replacements: readonly { route_id: number; address: string }[],
): RouteMove[] {
  const addresses = new Map(replacements.map(({ route_id, address }) => [route_id, address]))
  if (addresses.size < replacements.length) {
    const twice = repeated(replacements.map(({ route_id }) => String(route_id)))
    throw unresolved(`"route_replacements" names these routes more than once: ${some(twice)}.`)
  }
  const missing = routes.filter(({ id }) => !addresses.has(id))
  if (missing.length > 0) throw unresolved(`"route_replacements" lacks these routes: ${named(missing)}.`)
  const ids = new Set(routes.map(({ id }) => id))
  const foreign = [...addresses.keys()].filter((id) => !ids.has(id))
  if (foreign.length > 0) {
    throw unresolved(`These are not address routes of this domain: ${some(foreign.map(String))}.`)
  }
  const moves = routes.map(({ id, address }) => ({
    id,
    before: address,
    after: under(newName, id, addresses.get(id) ?? ''),
  }))
  const shared = new Set(repeated(moves.map(({ after }) => after)))
  if (shared.size > 0) {
    const sharing = moves.filter(({ after }) => shared.has(after))
    throw unresolved(
      `These routes have the same address: ${named(sharing.map(({ id, after }) => ({ id, address: after })))}. Each route needs its own.`,
    )
  }
  return moves
}

function under(newName: string, routeId: number, text: string): string {
  const address = readAddress(text)
  if ('fault' in address) throw unresolved(`The address for route ${routeId} ${address.fault}.`)
  if (address.domain !== newName) {
    throw unresolved(`The address for route ${routeId} is not under ${newName}.`)
  }
  return addressText(lowerCased(address))
}

const repeated = (items: readonly string[]): string[] => [
  ...new Set(items.filter((item, index) => items.indexOf(item) !== index)),
]

const maxNamed = 10

function some(items: readonly string[]): string {
  const more = items.length - maxNamed
  return items.slice(0, maxNamed).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

const named = (routes: readonly AddressRoute[]): string =>
  some(routes.map(({ id, address }) => `${id} (${address})`))

const unresolved = (message: string): PosternError => new PosternError('address_routes_unresolved', message)
