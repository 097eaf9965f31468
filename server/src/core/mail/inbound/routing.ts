import type { Static } from 'typebox'
import { type Address, addressText, lowerCased, readInternationalAddress } from '../../../formats/address.ts'
import type { ReadTx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type RouteRow, routeView } from '../../control/routes/routes.ts'
import { type Asked, findRoutingFacts, type RoutingFacts } from './routing.sql.ts'
import type { RoutingMatch } from './wire.ts'

/**
 * Which route takes mail for an address. Whoever brings mail is told by it at RCPT, and a person who asks
 * (`routing.match`) is told the same.
 *
 * A route for the address wins over one for the address without its tag (`ada+news@` is `ada@`), and that over the
 * catch-all; those that are switched off are passed over. Whose mail it is at all is decided before: a name belongs to
 * the project that has proved that it owns it, or else to the only one that claims it or ever has
 * (docs/decisions/0014-inbound-belongs-to.md).
 */
export type RoutingOutcome = Static<typeof RoutingMatch>['outcome']

export interface Routing {
  /** As it was asked for, with the domain in A-labels. */
  address: string
  outcome: RoutingOutcome
  /** The one that takes it, or would if something else did not stand against it. */
  route: RouteRow | null
  domain: RoutedDomain | null
}

export interface RoutedDomain {
  id: number
  projectId: number
  name: string
  status: string
  /** The living one. */
  identityId: number | null
}

/** Of any project: for whoever brings mail. */
export const routingsOf = (tx: ReadTx, addresses: readonly Address[]): Promise<Routing[]> =>
  routingsIn(tx, addresses, null)

/** What this project's routes do with mail for an address, for an administrator. */
export async function matchRouting(
  tx: ReadTx,
  projectId: number,
  text: string,
  /** The one domain of the project that the caller may know of; null: all of them. */
  domainId: number | null = null,
): Promise<Static<typeof RoutingMatch>> {
  const address = readInternationalAddress(text)
  if ('fault' in address) {
    throw new PosternError('invalid_parameter', `The parameter "address" ${address.fault}.`)
  }
  const [routing] = await routingsIn(tx, [address], projectId, domainId)
  if (!routing) throw new Error('an address without an answer')
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
 * The same for a customer. One answer for every domain that is not verified: any other would tell whether some project
 * claims or held the name.
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
  const what = route ? `Route ${route.id} is for this address, but ` : ''
  return {
    ...match,
    outcome: 'domain_not_verified',
    explanation:
      `${what}${domain.name} is not verified. Until it is, nothing is forwarded, and senders may be asked to try again ` +
      'later. Publish the DNS records of the domain and have it verified.',
  }
}

async function routingsIn(
  tx: ReadTx,
  addresses: readonly Address[],
  projectId: number | null,
  domainId: number | null = null,
): Promise<Routing[]> {
  const found = await findRoutingFacts(tx, addresses.map(askedOf), projectId, domainId)
  return addresses.map((address, at) => {
    const facts = found[at]
    if (!facts) throw new Error('an address that was not looked for')
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

function askedOf(address: Address): Asked {
  const { local, domain } = lowerCased(address)
  const tag = local.indexOf('+')
  const untagged = tag > 0 ? local.slice(0, tag) : local
  return { domain, address: `${local}@${domain}`, untagged: `${untagged}@${domain}` }
}

/** A project that has no such domain is not told what others do about it. */
function outcomeOf(facts: RoutingFacts, isOfOneProject: boolean): RoutingOutcome {
  const { holder_id, domain_id, is_locked, route } = facts
  if (domain_id === null && (isOfOneProject || holder_id === null)) return 'no_domain'
  if (holder_id === 0 || domain_id === null) return 'contested'
  if (holder_id !== domain_id) return 'held_elsewhere'
  if (is_locked) return 'project_locked'
  return route === null ? 'no_route' : takenBy(route, facts)
}

function takenBy({ action, forward_confirmed_at }: RouteRow, facts: RoutingFacts): RoutingOutcome {
  if (action === 'endpoint') return facts.is_endpoint_active ? 'endpoint' : 'endpoint_inactive'
  if (action !== 'forward') return action === 'reject' ? 'reject' : 'drop'
  if (facts.domain_status !== 'verified') return 'domain_not_verified'
  if (facts.provider !== 'service') return 'provider_forwards_nothing'
  return forward_confirmed_at === null ? 'forward_not_confirmed' : 'forward'
}

const nameOf = ({ address, domain }: Routing): string =>
  domain?.name ?? address.slice(address.lastIndexOf('@') + 1)
const routeOf = ({ route }: Routing): string =>
  route?.match === 'catch_all' ? `the catch-all (route ${route.id})` : `route ${route?.id}`
const comeAgain = 'is told to come again'

const explanations: Record<RoutingOutcome, (routing: Routing) => string> = {
  endpoint: (one) => `By ${routeOf(one)} it goes to endpoint ${one.route?.endpoint_id}.`,
  forward: (one) => `By ${routeOf(one)} it is forwarded to ${one.route?.forward_to}.`,
  reject: (one) => `By ${routeOf(one)} it is refused, and the sender is told.`,
  drop: (one) => `By ${routeOf(one)} it is accepted and thrown away.`,
  no_route: (one) =>
    `No active route takes it: it is refused. Make a route for the address, or a catch-all for ${nameOf(one)}.`,
  no_domain: (one) => `This project has no domain ${nameOf(one)}.`,
  held_elsewhere: (one) =>
    `Another project has proved that it owns ${nameOf(one)}, so mail for it is not this project's.`,
  contested: (one) =>
    `Other projects claim or have claimed ${nameOf(one)}, and none has proved that it owns it: whoever brings mail ` +
    `${comeAgain}. Publish the DNS records of the domain and have it verified.`,
  project_locked: () => `The project is locked: whoever brings mail ${comeAgain}.`,
  endpoint_inactive: (one) =>
    `By ${routeOf(one)} it would go to endpoint ${one.route?.endpoint_id}, which is switched off: whoever brings mail ` +
    `${comeAgain}.`,
  domain_not_verified: (one) =>
    `By ${routeOf(one)} it would be forwarded, and ${nameOf(one)} sends nothing before it is verified: whoever brings ` +
    `mail ${comeAgain}.`,
  provider_forwards_nothing: (one) =>
    `By ${routeOf(one)} it would be forwarded, and the provider of ${nameOf(one)} sends nothing in the name of others: ` +
    `whoever brings mail ${comeAgain}. Use an endpoint, or a domain with the provider "service".`,
  forward_not_confirmed: (one) =>
    `Route ${one.route?.id} forwards it to ${one.route?.forward_to}, which has not confirmed yet: senders are asked to try ` +
    'again later. The address was mailed a link; another one can be sent.',
}
