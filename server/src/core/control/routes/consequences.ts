import { readAddress } from '../../../formats/address.ts'
import type { ReadTx } from '../../../platform/db/db.ts'
import {
  countActiveAddressRoutes,
  findByMatch,
  findDomain,
  findDomainByName,
  findEndpoint,
  type RoutedDomain,
  type RouteRow,
} from './routes.sql.ts'

/**
 * What a change of routes does to mail, in sentences for whoever is about to make it. They are asked for when the
 * change is made and not yet committed, so what is looked up here is the new state; `before` is the old one.
 */
type Sentences = Promise<string[]>

export async function routeEffects(tx: ReadTx, before: RouteRow | null, after: RouteRow | null): Sentences {
  return [
    ...(after ? await takenBy(tx, after) : []),
    ...(before && isReleased(before, after) ? await takenAfter(tx, before) : []),
  ]
}

export async function routeWarnings(tx: ReadTx, before: RouteRow | null, after: RouteRow): Sentences {
  if (!after.is_active) return []
  return [
    ...arrivalWarnings(await domainOf(tx, after)),
    ...(await endpointWarnings(tx, after)),
    ...(after.action === 'drop' && before?.action !== 'drop'
      ? ['Mail is thrown away after it was accepted: no sender is told.']
      : []),
    ...(await forwardWarnings(tx, after)),
  ]
}

function arrivalWarnings({ name, status, has_mx }: RoutedDomain): string[] {
  if (status !== 'verified') {
    return [
      `Domain ${name} is not verified: mail for it is taken only if no other project claims or has held the name, and none is forwarded.`,
    ]
  }
  return has_mx ? [] : [`No MX record of ${name} was seen that leads here, so its mail goes elsewhere.`]
}

async function endpointWarnings(tx: ReadTx, { project_id, endpoint_id }: RouteRow): Sentences {
  if (endpoint_id === null) return []
  const endpoint = await findEndpoint(tx, project_id, endpoint_id)
  if (!endpoint || endpoint.is_active) return []
  return [`Endpoint ${endpoint.id} is switched off: it receives none of this mail until it is switched on.`]
}

async function forwardWarnings(
  tx: ReadTx,
  { project_id, forward_to, forward_confirmed_at }: RouteRow,
): Sentences {
  if (forward_to === null) return []
  const unconfirmed =
    forward_confirmed_at === null
      ? [
          `A link to confirm is mailed to ${forward_to}. Until it confirms, nothing is forwarded, and senders are asked to try again later.`,
        ]
      : []
  return [...unconfirmed, ...(await circleWarnings(tx, project_id, forward_to))]
}

/** Two routes that forward to each other go round for ever, but for the mail's own loop check. */
async function circleWarnings(tx: ReadTx, project_id: number, forward_to: string): Sentences {
  const address = readAddress(forward_to)
  if ('fault' in address) return []
  const domain = await findDomainByName(tx, project_id, address.domain)
  if (!domain) return []
  const next = await taking(tx, project_id, domain.id, forward_to.toLowerCase())
  if (!next) return [`No route of this project takes mail for ${forward_to}, so it would be refused there.`]
  return next.action === 'forward'
    ? [`Route ${next.id} forwards mail for ${forward_to} in turn, to ${next.forward_to}: mind a circle.`]
    : []
}

async function takenBy(tx: ReadTx, route: RouteRow): Sentences {
  const { project_id, domain_id, address, is_active } = route
  if (!is_active) return ['It is switched off and takes no mail.']
  const { name } = await domainOf(tx, route)
  const what = await deed(tx, route)
  if (address === null) {
    const others = await countActiveAddressRoutes(tx, project_id, domain_id)
    return [
      `From now on mail for every address of ${name} without a route of its own ${what}.`,
      ...(others === 0 ? [] : [`Address routes win: there ${others === 1 ? 'is 1' : `are ${others}`}.`]),
    ]
  }
  const catchAll = await findByMatch(tx, project_id, domain_id, null)
  return [
    `From now on mail for ${address} ${what}.`,
    ...(catchAll?.is_active
      ? [`The catch-all (route ${catchAll.id}) does not see mail for ${address}.`]
      : []),
  ]
}

/** Whether mail that it took is now somebody else's. */
const isReleased = (before: RouteRow, after: RouteRow | null): boolean =>
  before.is_active &&
  !(after?.is_active && after.domain_id === before.domain_id && after.address === before.address)

async function takenAfter(tx: ReadTx, before: RouteRow): Sentences {
  const { project_id, domain_id, address } = before
  const { name } = await domainOf(tx, before)
  const whose = address === null ? `the other addresses of ${name}` : address
  const next = await taking(tx, project_id, domain_id, address)
  return [
    next
      ? `Mail for ${whose} falls to the catch-all (route ${next.id}): it ${await deed(tx, next)}.`
      : `No route takes mail for ${whose} any more: it is refused.`,
  ]
}

/** The route that takes mail for an address, or with null what the catch-all would take. */
async function taking(
  tx: ReadTx,
  projectId: number,
  domainId: number,
  address: string | null,
): Promise<RouteRow | undefined> {
  const own = address === null ? undefined : await findByMatch(tx, projectId, domainId, address)
  if (own?.is_active) return own
  const catchAll = await findByMatch(tx, projectId, domainId, null)
  return catchAll?.is_active ? catchAll : undefined
}

/** What a route does to mail, as the end of a sentence about it. */
async function deed(tx: ReadTx, { project_id, action, endpoint_id, forward_to }: RouteRow): Promise<string> {
  switch (action) {
    case 'endpoint': {
      const endpoint = await findEndpoint(tx, project_id, endpoint_id ?? 0)
      return `goes to endpoint ${endpoint_id} (${endpoint?.name})`
    }
    case 'forward':
      return `is forwarded to ${forward_to}`
    case 'reject':
      return 'is refused, and the sender is told'
    default:
      return 'is accepted and thrown away'
  }
}

async function domainOf(tx: ReadTx, { project_id, domain_id }: RouteRow): Promise<RoutedDomain> {
  const domain = await findDomain(tx, project_id, domain_id)
  if (!domain) throw new Error(`route without its domain ${domain_id}`)
  return domain
}
