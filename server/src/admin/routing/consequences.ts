import {
  countActiveAddressRoutes,
  findByMatch,
  findEndpoint,
  findRoutedDomain,
  findRoutedDomainByName,
  type RoutedDomain,
  type RouteRow,
} from '../../core/control/routes/routes.ts'
import { readAddress } from '../../formats/address.ts'
import type { ReadTx } from '../../platform/db/db.ts'

/**
 * Effects and warnings of a route change, as sentences for the administrator who makes it. They are computed after the
 * change and before the commit, so every lookup here returns the new state; `before` is the old one.
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
      ? ['Mail is accepted and discarded: senders are not notified.']
      : []),
    ...(await forwardWarnings(tx, after)),
  ]
}

function arrivalWarnings({ name, status, has_mx }: RoutedDomain): string[] {
  if (status !== 'verified') {
    return [
      `Domain ${name} is not verified: its mail is accepted only if no other project claims or has held the name, and nothing is forwarded.`,
    ]
  }
  return has_mx ? [] : [`No MX record of ${name} points here, so its mail is delivered elsewhere.`]
}

async function endpointWarnings(tx: ReadTx, { project_id, endpoint_id }: RouteRow): Sentences {
  if (endpoint_id === null) return []
  const endpoint = await findEndpoint(tx, project_id, endpoint_id)
  if (!endpoint || endpoint.is_active) return []
  return [`Endpoint ${endpoint.id} is inactive: it receives none of this mail until it is activated.`]
}

async function forwardWarnings(
  tx: ReadTx,
  { project_id, forward_to, forward_confirmed_at }: RouteRow,
): Sentences {
  if (forward_to === null) return []
  const unconfirmed =
    forward_confirmed_at === null
      ? [
          `A confirmation link is mailed to ${forward_to}. Until it confirms, nothing is forwarded, and senders get a temporary failure.`,
        ]
      : []
  return [...unconfirmed, ...(await circleWarnings(tx, project_id, forward_to))]
}

/** Two routes that forward to each other go round for ever, but for the mail's own loop check. */
async function circleWarnings(tx: ReadTx, project_id: number, forward_to: string): Sentences {
  const address = readAddress(forward_to)
  if ('fault' in address) return []
  const domain = await findRoutedDomainByName(tx, project_id, address.domain)
  if (!domain) return []
  const next = await taking(tx, project_id, domain.id, forward_to.toLowerCase())
  if (!next) return [`No route of this project accepts mail for ${forward_to}, so it would be rejected.`]
  return next.action === 'forward'
    ? [
        `Route ${next.id} forwards mail for ${forward_to} on to ${next.forward_to}: check for a forwarding loop.`,
      ]
    : []
}

async function takenBy(tx: ReadTx, route: RouteRow): Sentences {
  const { project_id, domain_id, address, is_active } = route
  if (!is_active) return ['The route is inactive and receives no mail.']
  const { name } = await domainOf(tx, route)
  const what = await deed(tx, route)
  if (address === null) {
    const others = await countActiveAddressRoutes(tx, project_id, domain_id)
    return [
      `From now on mail for every address of ${name} without a route of its own ${what}.`,
      ...(others === 0
        ? []
        : [`Address routes take precedence: there ${others === 1 ? 'is 1' : `are ${others}`}.`]),
    ]
  }
  const catchAll = await findByMatch(tx, project_id, domain_id, null)
  return [
    `From now on mail for ${address} ${what}.`,
    ...(catchAll?.is_active
      ? [`The catch-all (route ${catchAll.id}) does not receive mail for ${address}.`]
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
      : `No route accepts mail for ${whose} any more: it is rejected.`,
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
      return 'is rejected, and the sender gets a bounce'
    default:
      return 'is accepted and discarded'
  }
}

async function domainOf(tx: ReadTx, { project_id, domain_id }: RouteRow): Promise<RoutedDomain> {
  const domain = await findRoutedDomain(tx, project_id, domain_id)
  if (!domain) throw new Error(`route without its domain ${domain_id}`)
  return domain
}
