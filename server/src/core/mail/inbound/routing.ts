import type { Static } from 'typebox'
import { type Address, addressText, lowerCased, readInternationalAddress } from '../../../formats/address.ts'
import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type RouteRow, routeView } from '../../control/routes/routes.ts'
import { type AddressLookup, findRoutingFacts, type RoutingFacts } from './routing.sql.ts'
import type { RoutingMatch } from './wire.ts'

/**
 * Finds the route that matches an address. The same result determines the reply to RCPT and the response of
 * `routing.match`.
 *
 * A route for the full address takes precedence over one for the address without its subaddress (`ada@` for
 * `ada+news@`), which takes precedence over the catch-all. Inactive routes are skipped. The project is
 * determined first: a name belongs to the project that has verified it, or otherwise to the only project that
 * claims or has ever claimed it (docs/decisions/0014-inbound-belongs-to.md).
 */
export type RoutingOutcome = Static<typeof RoutingMatch>['outcome']

export interface Routing {
  /** As specified, with the domain in A-labels. */
  address: string
  outcome: RoutingOutcome
  /** The matching route, even if something else prevents it from applying. */
  route: RouteRow | null
  domain: RoutedDomain | null
}

export interface RoutedDomain {
  id: number
  projectId: number
  name: string
  status: string
  /** The current identity. */
  identityId: number | null
}

/** For inbound SMTP, across all projects. */
export const routingsOf = (tx: ReadTx, addresses: readonly Address[]): Promise<Routing[]> =>
  routingsIn(tx, addresses, null)

/** Shows an administrator what this project's routes do with mail for an address. */
export async function matchRouting(
  tx: ReadTx,
  projectId: number,
  text: string,
  /** The only domain of the project that the caller can see; null for all. */
  domainId: number | null = null,
): Promise<Static<typeof RoutingMatch>> {
  const address = readInternationalAddress(text)
  if ('fault' in address) {
    throw new PosternError('invalid_parameter', `The parameter "address" ${address.fault}.`)
  }
  const [routing] = await routingsIn(tx, [address], projectId, domainId)
  if (!routing) throw new Error('no routing was returned for the address')
  const { route, domain } = routing
  return {
    address: routing.address,
    outcome: routing.outcome,
    route: route && routeView(route),
    domain: domain && { id: domain.id, name: domain.name, status: domain.status as 'verified' },
    explanation: explanations[routing.outcome](routing),
  }
}

/**
 * Like `matchRouting`, but for a customer. The response is identical for every unverified domain; a
 * difference would reveal whether another project claims or has held the name.
 */
export async function matchRoutingForCustomer(
  tx: ReadTx,
  projectId: number,
  text: string,
  domainId: number | null,
): Promise<Static<typeof RoutingMatch>> {
  const match = await matchRouting(tx, projectId, text, domainId)
  const { domain, route } = match
  if (!domain || domain.status === 'verified') return match
  const prefix = route ? `Route ${route.id} matches this address, but ` : ''
  return {
    ...match,
    outcome: 'domain_not_verified',
    explanation:
      `${prefix}${domain.name} is not verified. Until it is, mail is not forwarded, and senders may get a temporary failure. ` +
      'Publish the DNS records of the domain and request a check.',
  }
}

async function routingsIn(
  tx: ReadTx,
  addresses: readonly Address[],
  projectId: number | null,
  domainId: number | null = null,
): Promise<Routing[]> {
  const found = await findRoutingFacts(tx, addresses.map(lookupOf), projectId, domainId)
  return addresses.map((address, at) => {
    const facts = found[at]
    if (!facts) throw new Error('no routing facts were returned for the address')
    return {
      address: addressText(address),
      outcome: outcomeOf(facts, projectId !== null),
      route: facts.route,
      domain: domainOf(facts),
    }
  })
}

function domainOf(facts: RoutingFacts): RoutedDomain | null {
  const { domain_id: id, project_id: projectId, domain_name: name, domain_status: status } = facts
  if (id === null || projectId === null || name === null || status === null) return null
  return { id, projectId, name, status, identityId: facts.identity_id }
}

function lookupOf(address: Address): AddressLookup {
  const { local, domain } = lowerCased(address)
  const tag = local.indexOf('+')
  const untagged = tag > 0 ? local.slice(0, tag) : local
  return { domain, address: `${local}@${domain}`, untagged: `${untagged}@${domain}` }
}

/** A project that does not have the domain must not learn whether other projects do. */
function outcomeOf(facts: RoutingFacts, isOfOneProject: boolean): RoutingOutcome {
  const { holder_id, domain_id, is_locked, route } = facts
  if (domain_id === null && (isOfOneProject || holder_id === null)) return 'no_domain'
  if (holder_id === 0 || domain_id === null) return 'contested'
  if (holder_id !== domain_id) return 'held_elsewhere'
  if (is_locked) return 'project_locked'
  return route === null ? 'no_route' : outcomeOfRoute(route, facts)
}

function outcomeOfRoute({ action, forward_confirmed_at }: RouteRow, facts: RoutingFacts): RoutingOutcome {
  if (action === 'endpoint') return facts.is_endpoint_active ? 'endpoint' : 'endpoint_inactive'
  if (action !== 'forward') return action === 'reject' ? 'reject' : 'drop'
  if (facts.domain_status !== 'verified') return 'domain_not_verified'
  if (facts.provider !== 'service') return 'provider_forwards_nothing'
  return forward_confirmed_at === null ? 'forward_not_confirmed' : 'forward'
}

const nameOf = ({ address, domain }: Routing): string =>
  domain?.name ?? address.slice(address.lastIndexOf('@') + 1)
const routeOf = ({ route }: Routing): string =>
  route?.match === 'catch_all' ? `The catch-all (route ${route.id})` : `Route ${route?.id}`
const tryLater = 'Senders get a temporary failure.'

const explanations: Record<RoutingOutcome, (routing: Routing) => string> = {
  endpoint: (one) => `${routeOf(one)} delivers it to endpoint ${one.route?.endpoint_id}.`,
  forward: (one) => `${routeOf(one)} forwards it to ${one.route?.forward_to}.`,
  reject: (one) => `${routeOf(one)} rejects it, and the sender gets an error.`,
  drop: (one) => `${routeOf(one)} accepts and discards it.`,
  no_route: (one) =>
    `No active route matches, so it is rejected. Create a route for the address, or a catch-all for ${nameOf(one)}.`,
  no_domain: (one) => `This project has no domain ${nameOf(one)}.`,
  held_elsewhere: (one) =>
    `Another project has verified that it owns ${nameOf(one)}, so this project does not receive mail for it.`,
  contested: (one) =>
    `Other projects claim or have claimed ${nameOf(one)}, and none has verified ownership. ${tryLater} ` +
    'Publish the DNS records of the domain and request a check.',
  project_locked: () => `The project is locked. ${tryLater}`,
  endpoint_inactive: (one) =>
    `${routeOf(one)} delivers it to endpoint ${one.route?.endpoint_id}, which is inactive. ${tryLater}`,
  domain_not_verified: (one) =>
    `${routeOf(one)} forwards it, but ${nameOf(one)} cannot send until it is verified. ${tryLater}`,
  provider_forwards_nothing: (one) =>
    `${routeOf(one)} forwards it, but the provider of ${nameOf(one)} cannot forward mail. ` +
    `${tryLater} Use an endpoint, or a domain with the provider "service".`,
  forward_not_confirmed: (one) =>
    `${routeOf(one)} forwards it to ${one.route?.forward_to}, which has not confirmed yet. ${tryLater} ` +
    'A confirmation link was sent to the address; you can send another one.',
}
