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
  return has_mx ? [] : [`No MX record for ${name} points here, so its mail is delivered elsewhere.`]
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
          `A confirmation link is sent to ${forward_to}. Until the recipient confirms, nothing is forwarded, and senders get a temporary failure.`,
        ]
      : []
  return [...unconfirmed, ...(await circleWarnings(tx, project_id, forward_to))]
}

/**
 * Two routes that forward to each other form a loop. Only the loop detection based on the message's headers stops it.
 */
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
  const what = await actionPhrase(tx, route)
  if (address === null) {
    const others = await countActiveAddressRoutes(tx, project_id, domain_id)
    return [
      `Mail for every address of ${name} without an address route ${what}.`,
      ...(others === 0
        ? []
        : [`Address routes take precedence: there ${others === 1 ? 'is 1' : `are ${others}`}.`]),
    ]
  }
  const catchAll = await findByMatch(tx, project_id, domain_id, null)
  return [
    `Mail for ${address} ${what}.`,
    ...(catchAll?.is_active
      ? [`The catch-all (route ${catchAll.id}) does not receive mail for ${address}.`]
      : []),
  ]
}

/** Whether mail that the route used to receive is now received by another route or rejected. */
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
      ? `The catch-all (route ${next.id}) receives mail for ${whose}: it ${await actionPhrase(tx, next)}.`
      : `No other route accepts mail for ${whose}: it is rejected.`,
  ]
}

/** The route that receives mail for an address; for null, the catch-all. */
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

/** What a route does with mail, as a verb phrase. */
async function actionPhrase(
  tx: ReadTx,
  { project_id, action, endpoint_id, forward_to }: RouteRow,
): Promise<string> {
  switch (action) {
    case 'endpoint': {
      const endpoint = await findEndpoint(tx, project_id, endpoint_id ?? 0)
      return `is delivered to endpoint ${endpoint_id} (${endpoint?.name})`
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
