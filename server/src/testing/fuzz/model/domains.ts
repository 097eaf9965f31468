import { domainToASCII } from 'node:url'
import type { Chance } from '../../harness/random.ts'
import { absentId, weighted } from '../draw.ts'
import type { Intent, Outcome } from './intent.ts'
import { chooseProject, chooseThing, deleteOutcome, inProject, onThing, remember } from './targets.ts'
import { anId, aText, aTime, timeFrom, Unknown } from './unknown.ts'
import { findById, type Project, planInForce, type Thing, type View, type World } from './world.ts'

/** A domain has another identity after every edit, and is to be verified anew: nothing of what is seen in DNS is here. */

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

/** Names of this world alone, some of them the same in another spelling. */
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

/** Seldom the operator's own, whose RSA keys take the service a tenth of a second each. */
const provider = (chance: Chance): string => (chance.happens(0.2) ? 'service' : 'ses')

/** What DNS has to show, none of which it shows. */
const newRecords = new Unknown(
  'records that wait to be seen',
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
  const { domains } = project.things
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
    answer: view,
    version: 1,
    commit: (made: View) => remember(project, 'domains', 'domain', made),
  }
}

export function editDomain(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseThing(world, chance, 'domains')
  if (!chosen) return undefined
  const { project, thing } = chosen
  const routes = project && thing ? addressRoutes(project, thing) : []
  const name = chance.happens(0.15) && thing ? String(thing.view['name']) : nameText(world, chance)
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
    ...onThing('domains', chosen),
    body,
    outcome: () => (project && thing ? edited(project, thing, body) : 'not_found'),
  }
}

interface Replacement {
  route_id: number
  address: string
}

/** Mostly one for each; now and then one too few, one too many, or one under another name. */
function replacements(chance: Chance, routes: readonly Thing[], name: string): Replacement[] {
  const whole = routes.map(({ id }, n) => ({ route_id: id, address: `r${n}@${name}` }))
  return weighted<() => Replacement[]>(chance, [
    [8, () => whole],
    [1, () => whole.slice(1)],
    [1, () => [...whole, { route_id: absentId(chance), address: `x@${name}` }]],
    [1, () => whole.map((one, n) => (n === 0 ? { ...one, address: 'x@elsewhere.example.net' } : one))],
  ])()
}

const addressRoutes = (project: Project, { id }: Thing): Thing[] =>
  project.things.routing.filter(({ view }) => view['domain_id'] === id && view['match'] === 'address')

function edited(project: Project, thing: Thing, body: View): Outcome | string {
  const before = thing.view
  if (body['name'] === undefined && body['mta_provider'] === undefined) return 'validation_failed'
  const name = body['name'] === undefined ? String(before['name']) : keptName(String(body['name']))
  if (name === undefined) return 'validation_failed'
  const mta_provider = String(body['mta_provider'] ?? before['mta_provider'])
  if (refusesProvider(project, mta_provider)) return 'provider_not_allowed'
  if (project.things.domains.some((one) => one !== thing && one.view['name'] === name))
    return 'already_exists'
  const moved = movedRoutes(project, thing, name, body)
  if (!moved || wouldCircle(project, thing, name)) return 'address_routes_unresolved'
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
    answer: after,
    version: thing.version + 1,
    commit(view: View) {
      thing.version++
      thing.view = view
      moved()
      return { acts: project.acts, id: thing.id }
    },
  }
}

/** What becomes of the address routes, or undefined where the body does not say it of each. */
function movedRoutes(project: Project, thing: Thing, name: string, body: View): (() => void) | undefined {
  const given = body['route_replacements'] as Replacement[] | undefined
  const preserves = body['preserve_local_parts'] === true
  const routes = addressRoutes(project, thing)
  const isRenamed = name !== thing.view['name']
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

/** A route of the domain forwards to what would then be its own name. */
const wouldCircle = (project: Project, thing: Thing, name: string): boolean =>
  name !== thing.view['name'] &&
  project.things.routing.some(
    ({ view }) =>
      view['domain_id'] === thing.id &&
      String(view['forward_to'] ?? '')
        .toLowerCase()
        .endsWith(`@${name}`),
  )

export function deleteDomain(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseThing(world, chance, 'domains')
  if (!chosen) return undefined
  const { project, thing } = chosen
  return {
    operation: 'domains.delete',
    ...onThing('domains', chosen),
    body: {},
    outcome() {
      if (!project || !thing) return 'not_found'
      const { routing, 'api-keys': keys } = project.things
      const isUsed = [...routing, ...keys].some(({ view }) => view['domain_id'] === thing.id)
      return isUsed ? 'in_use' : deleteOutcome(project, 'domains', thing)
    },
  }
}

export function rotateDomain(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseThing(world, chance, 'domains')
  if (!chosen) return undefined
  const { project, thing } = chosen
  return {
    operation: 'domains.rotate',
    ...onThing('domains', chosen),
    body: {},
    outcome() {
      if (!project || !thing) return 'not_found'
      return thing.view['mta_provider'] === 'ses' ? 'validation_failed' : rotated(project, thing)
    },
  }
}

function rotated(project: Project, thing: Thing): Outcome {
  const before = thing.view
  // DNS shows no key yet, so that the new one takes the place of the one before.
  const identity = { ...(before['identity'] as View), selector: aSelector }
  const after = { ...before, identity, dns_records: newRecords, updated_at: timeFrom(before['updated_at']) }
  return {
    change: { type: 'domain', before, after: before },
    answer: { resource: after },
    version: thing.version + 1,
    commit({ resource }: { resource: View }) {
      thing.version++
      thing.view = resource
      return {
        acts: project.acts,
        id: thing.id,
        location: `/v1/admin/projects/${project.id}/domains/${thing.id}`,
      }
    },
  }
}

/** Nothing is to be seen yet, and nobody looks: what was asked for is in the audit alone. */
export function verifyDomain(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseThing(world, chance, 'domains')
  if (!chosen) return undefined
  const { project, thing } = chosen
  return {
    operation: 'domains.verify',
    ...onThing('domains', chosen),
    // It moves no version, so that there is none to compare.
    target: null,
    body: {},
    outcome() {
      if (!project || !thing) return 'not_found'
      return {
        change: { type: 'domain', before: {}, after: {} },
        answer: thing.view,
        version: thing.version,
        commit: () => ({ acts: project.acts, id: thing.id }),
      }
    },
  }
}

/** A domain of the project, or now and then one that is not. */
export function domainFor(
  world: World,
  project: Project | undefined,
  chance: Chance,
): { id: number; thing: Thing | undefined } {
  const own = project?.things.domains ?? []
  const others = world.projects.filter((other) => other !== project).flatMap(({ things }) => things.domains)
  const stranger = chance.pick([absentId(chance), ...others.map(({ id }) => id)])
  const id = own.length > 0 && !chance.happens(0.05) ? chance.pick(own).id : stranger
  return { id, thing: findById(own, id) }
}
