import { domainToASCII } from 'node:url'
import type { Chance } from '../../harness/random.ts'
import { absentId, weighted } from '../draw.ts'
import type { Intent, Outcome } from './intent.ts'
import { chooseProject, chooseResource, deleteOutcome, inProject, onResource, remember } from './targets.ts'
import { anId, aText, aTime, timeFrom, Unknown } from './unknown.ts'
import { findById, type Project, planInForce, type Resource, type View, type World } from './world.ts'

/** Domains. Every edit gives a domain a new identity, which must be verified. DNS results are not modelled. */

const badNames = [
  'com',
  'co.uk',
  'localhost',
  'a..example.com',
  '.example.com',
  '-a.example.com',
  'a-.example.com',
  'a b.example.com',
  'a_b.example.com',
  '*.example.com',
  '127.0.0.1',
  '[::1]',
  'example.com/x',
  'user@example.com',
  `${'a'.repeat(64)}.example.com`,
  "'; drop table x; --.com",
  'a\n.example.com',
]

/** Names that are unique to this sequence, some in an alternative spelling. */
const nameText = (world: World, chance: Chance): string => {
  const number = chance.below(12)
  return weighted<() => string>(chance, [
    [12, () => `m${number}.${world.mark}.example.com`],
    [2, () => `M${number}.${world.mark}.Example.COM`],
    [2, () => `bücher${number}.${world.mark}.example.org`],
    [2, () => chance.pick(badNames)],
  ])()
}

const keptName = (name: string): string | undefined =>
  badNames.includes(name) ? undefined : domainToASCII(name).toLowerCase()

/** Rarely `service`, because generating an RSA key takes a tenth of a second. */
const provider = (chance: Chance): string => (chance.happens(0.2) ? 'service' : 'ses')

/** The required DNS records, all still pending. */
const newRecords = new Unknown(
  'pending records',
  (value) => Array.isArray(value) && value.length > 0 && value.every(({ status }) => status === 'pending'),
)

const aSelector = aText(/^[a-z0-9-]{1,63}$/)

const newIdentity = (mta_provider: string) => ({
  id: anId,
  provider: mta_provider,
  state: 'registering',
  selector: mta_provider === 'ses' ? null : aSelector,
  registered_at: null,
})

const refusesProvider = (project: Project, mta_provider: unknown): boolean =>
  mta_provider === 'service' && project.view['allow_service_mta'] !== true

export function createDomain(world: World, chance: Chance): Intent {
  const parent = chooseProject(world, chance)
  const body = { name: nameText(world, chance), mta_provider: provider(chance) }
  return {
    operation: 'domains.create',
    ...inProject(parent),
    body,
    outcome: () => (parent.project ? created(world, parent.project, body) : 'not_found'),
  }
}

function created(
  world: World,
  project: Project,
  { name, mta_provider }: { name: string; mta_provider: string },
): Outcome | string {
  const kept = keptName(name)
  if (kept === undefined) return 'validation_failed'
  if (refusesProvider(project, mta_provider)) return 'provider_not_allowed'
  const { domains } = project.resources
  if (domains.some(({ view }) => view['name'] === kept)) return 'already_exists'
  const { max_domains: value } = planInForce(world, project).view as { max_domains: number }
  const count = domains.length + 1
  const view = {
    id: anId,
    project_id: project.id,
    name: kept,
    mta_provider,
    status: 'pending',
    identity: newIdentity(mta_provider),
    dns_records: newRecords,
    verified_at: null,
    last_checked_at: null,
    last_check_error: null,
    created_at: aTime,
    updated_at: aTime,
  }
  return {
    change: { type: 'domain', before: null, after: { name: kept, mta_provider } },
    limit: count > value ? { limit: 'max_domains', value, count } : null,
    response: view,
    version: 1,
    commit: (made: View) => remember(project, 'domains', 'domain', made),
  }
}

export function editDomain(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'domains')
  if (!chosen) return undefined
  const { project, resource } = chosen
  const routes = project && resource ? addressRoutes(project, resource) : []
  const name = chance.happens(0.15) && resource ? String(resource.view['name']) : nameText(world, chance)
  const body: View = {
    ...(chance.happens(0.6) ? { name } : {}),
    ...(chance.happens(0.5) ? { mta_provider: provider(chance) } : {}),
    ...(chance.happens(0.3) ? { preserve_local_parts: chance.happens(0.85) } : {}),
    ...(chance.happens(0.2)
      ? { route_replacements: replacements(chance, routes, keptName(name) ?? 'x') }
      : {}),
  }
  return {
    operation: 'domains.edit',
    ...onResource('domains', chosen),
    body,
    outcome: () => (project && resource ? edited(project, resource, body) : 'not_found'),
  }
}

interface Replacement {
  route_id: number
  address: string
}

/** Usually one address per route; sometimes one too few, one too many, or one under another domain. */
function replacements(chance: Chance, routes: readonly Resource[], name: string): Replacement[] {
  const whole = routes.map(({ id }, n) => ({ route_id: id, address: `r${n}@${name}` }))
  return weighted<() => Replacement[]>(chance, [
    [8, () => whole],
    [1, () => whole.slice(1)],
    [1, () => [...whole, { route_id: absentId(chance), address: `x@${name}` }]],
    [1, () => whole.map((one, n) => (n === 0 ? { ...one, address: 'x@elsewhere.example.net' } : one))],
  ])()
}

const addressRoutes = (project: Project, { id }: Resource): Resource[] =>
  project.resources.routing.filter(({ view }) => view['domain_id'] === id && view['match'] === 'address')

function edited(project: Project, resource: Resource, body: View): Outcome | string {
  const before = resource.view
  if (body['name'] === undefined && body['mta_provider'] === undefined) return 'validation_failed'
  const name = body['name'] === undefined ? String(before['name']) : keptName(String(body['name']))
  if (name === undefined) return 'validation_failed'
  const mta_provider = String(body['mta_provider'] ?? before['mta_provider'])
  if (refusesProvider(project, mta_provider)) return 'provider_not_allowed'
  if (project.resources.domains.some((one) => one !== resource && one.view['name'] === name))
    return 'already_exists'
  const moved = movedRoutes(project, resource, name, body)
  if (!moved || wouldCircle(project, resource, name)) return 'address_routes_unresolved'
  const after = {
    ...before,
    name,
    mta_provider,
    status: 'pending',
    identity: newIdentity(mta_provider),
    dns_records: newRecords,
    verified_at: null,
    last_checked_at: null,
    last_check_error: null,
    updated_at: timeFrom(before['updated_at']),
  }
  return {
    change: { type: 'domain', before, after: { ...before, name, mta_provider } },
    response: after,
    version: resource.version + 1,
    commit(view: View) {
      resource.version++
      resource.view = view
      moved()
      return { acts: project.acts, id: resource.id }
    },
  }
}

/** Moves the address routes. Undefined if the body does not resolve every route. */
function movedRoutes(
  project: Project,
  resource: Resource,
  name: string,
  body: View,
): (() => void) | undefined {
  const given = body['route_replacements'] as Replacement[] | undefined
  const preserves = body['preserve_local_parts'] === true
  const routes = addressRoutes(project, resource)
  const isRenamed = name !== resource.view['name']
  if (preserves && given !== undefined) return undefined
  if (!isRenamed || routes.length === 0) return (given ?? []).length === 0 ? () => {} : undefined
  if (!preserves && given === undefined) return undefined
  const addresses = new Map(
    preserves
      ? routes.map(({ id, view }) => [id, String(view['address']).replace(/@.*$/, `@${name}`)])
      : (given ?? []).map(({ route_id, address }) => [route_id, address.toLowerCase()]),
  )
  const isWhole =
    addresses.size === routes.length &&
    (given?.length ?? addresses.size) === addresses.size &&
    routes.every(({ id }) => addresses.get(id)?.endsWith(`@${name}`)) &&
    new Set(addresses.values()).size === addresses.size
  if (!isWhole) return undefined
  return () => {
    for (const route of routes) {
      route.version++
      const updated_at = timeFrom(route.view['updated_at'])
      route.view = { ...route.view, address: addresses.get(route.id), updated_at }
    }
  }
}

/** True if a route of the domain forwards to the domain's new name. */
const wouldCircle = (project: Project, resource: Resource, name: string): boolean =>
  name !== resource.view['name'] &&
  project.resources.routing.some(
    ({ view }) =>
      view['domain_id'] === resource.id &&
      String(view['forward_to'] ?? '')
        .toLowerCase()
        .endsWith(`@${name}`),
  )

export function deleteDomain(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'domains')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'domains.delete',
    ...onResource('domains', chosen),
    body: {},
    outcome() {
      if (!project || !resource) return 'not_found'
      const { routing, 'api-keys': keys } = project.resources
      const isUsed = [...routing, ...keys].some(({ view }) => view['domain_id'] === resource.id)
      return isUsed ? 'in_use' : deleteOutcome(project, 'domains', resource)
    },
  }
}

export function rotateDomain(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'domains')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'domains.rotate',
    ...onResource('domains', chosen),
    body: {},
    outcome() {
      if (!project || !resource) return 'not_found'
      return resource.view['mta_provider'] === 'ses' ? 'validation_failed' : rotated(project, resource)
    },
  }
}

function rotated(project: Project, resource: Resource): Outcome {
  const before = resource.view
  // The old key is not published yet, so the new key replaces it.
  const identity = { ...(before['identity'] as View), selector: aSelector }
  const after = { ...before, identity, dns_records: newRecords, updated_at: timeFrom(before['updated_at']) }
  return {
    change: { type: 'domain', before, after: before },
    response: { resource: after },
    version: resource.version + 1,
    commit({ resource: rotated }: { resource: View }) {
      resource.version++
      resource.view = rotated
      return {
        acts: project.acts,
        id: resource.id,
        location: `/v1/admin/projects/${project.id}/domains/${resource.id}`,
      }
    },
  }
}

/** No check runs, so the request changes only the audit log. */
export function verifyDomain(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'domains')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'domains.verify',
    ...onResource('domains', chosen),
    // The operation does not change the version, so If-Match does not apply.
    target: null,
    body: {},
    outcome() {
      if (!project || !resource) return 'not_found'
      return {
        change: { type: 'domain', before: {}, after: {} },
        response: resource.view,
        version: resource.version,
        commit: () => ({ acts: project.acts, id: resource.id }),
      }
    },
  }
}

/** Usually one of the project's domains, sometimes another project's or a nonexistent one. */
export function domainFor(
  world: World,
  project: Project | undefined,
  chance: Chance,
): { id: number; resource: Resource | undefined } {
  const own = project?.resources.domains ?? []
  const others = world.projects
    .filter((other) => other !== project)
    .flatMap(({ resources }) => resources.domains)
  const stranger = chance.pick([absentId(chance), ...others.map(({ id }) => id)])
  const id = own.length > 0 && !chance.happens(0.05) ? chance.pick(own).id : stranger
  return { id, resource: findById(own, id) }
}
