import type { Chance } from '../../harness/random.ts'
import { absentId, weighted } from '../draw.ts'
import { domainFor } from './domains.ts'
import type { Intent, Outcome } from './intent.ts'
import {
  chooseProject,
  chooseResource,
  deleteOutcome,
  editOutcome,
  inProject,
  onResource,
  remember,
} from './targets.ts'
import { anId, aTime } from './unknown.ts'
import { findById, type Project, type Resource, type View, type World } from './world.ts'

export const routeFields = [
  'domain_id',
  'match',
  'address',
  'action',
  'endpoint_id',
  'forward_to',
  'is_active',
] as const

const locals = ['sales', 'info', 'Help', "o'neill+x", 'a.b_c-d', 'x'.repeat(64), '!#$%&*/=?^`{|}~']
const badAddresses = ['', 'sales', '@', 'a b', '.a', 'a..b', '"a"', 'ä', 'a@b', `${'x'.repeat(65)}`]
const outside = ['helpdesk@example.net', 'Help.Desk@Example.NET', "o'neill+x@mail.example.co.uk"]
const badOutside = [
  '',
  'helpdesk',
  'a@',
  '@example.net',
  'a b@example.net',
  'a@example..net',
  'Ada <a@example.net>',
  'a@exämple.net',
]

function configuration(world: World, project: Project | undefined, chance: Chance): View {
  const { id: domain_id, resource: domain } = domainFor(world, project, chance)
  const name = String(domain?.view['name'] ?? 'absent.example.com')
  const match = chance.happens(0.7) ? 'address' : 'catch_all'
  const endpoints = project?.resources.endpoints ?? []
  const action = chance.pick([endpoints.length > 0 ? 'endpoint' : 'drop', 'forward', 'reject', 'drop'])
  const address = weighted<() => string | null>(chance, [
    [12, () => `${chance.pick(locals)}@${name}`],
    [1, () => `${chance.pick(badAddresses)}@${name}`],
    [1, () => `sales@sub.${name}`],
    [1, () => 'sales@example.net'],
    [1, () => null],
  ])()
  const endpoint =
    endpoints.length > 0 && !chance.happens(0.05) ? chance.pick(endpoints).id : absentId(chance)
  const forward = weighted<() => string>(chance, [
    [8, () => chance.pick(outside)],
    [1, () => chance.pick(badOutside)],
    [1, () => `loop@${name}`],
  ])()
  const applies = (does: boolean) => (chance.happens(0.03) ? !does : does)
  return {
    domain_id,
    match,
    address: applies(match === 'address') ? address : null,
    action,
    endpoint_id: applies(action === 'endpoint') ? endpoint : null,
    forward_to: applies(action === 'forward') ? forward : null,
    is_active: chance.happens(0.8),
  }
}

/** RFC 5321 §4.1.2: the local part is a dot-string of at most 64 characters, and the address has at most 254. */
function mailbox(text: string): { local: string; name: string } | undefined {
  const at = text.lastIndexOf('@')
  const [local, name] = [text.slice(0, at), text.slice(at + 1)]
  const isLocal =
    local.length <= 64 && local.split('.').every((atom) => /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+$/.test(atom))
  const isName = name.split('.').every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i.test(label))
  if (at < 0 || text.length > 254 || !isLocal || !isName || !name.includes('.')) return undefined
  return { local, name: name.toLowerCase() }
}

/** The stored route or the error code. */
function kept(project: Project, body: View, self: Resource | undefined): View | string {
  const domain = findById(project.resources.domains, body['domain_id'])
  if (!domain) return 'validation_failed'
  const { match, action, address, endpoint_id, forward_to } = body
  if ((match === 'address') !== (address !== null)) return 'validation_failed'
  if ((action === 'endpoint') !== (endpoint_id !== null)) return 'validation_failed'
  if ((action === 'forward') !== (forward_to !== null)) return 'validation_failed'
  const own = address === null ? null : mailbox(String(address))
  if (own === undefined || (own && own.name !== domain.view['name'])) return 'validation_failed'
  const target = forward_to === null ? null : mailbox(String(forward_to))
  if (target === undefined || target?.name === domain.view['name']) return 'validation_failed'
  if (endpoint_id !== null && !findById(project.resources.endpoints, endpoint_id)) return 'validation_failed'
  const ownAddress = own && `${own.local.toLowerCase()}@${own.name}`
  const isTaken = project.resources.routing.some(
    ({ id, view }) => id !== self?.id && view['domain_id'] === domain.id && view['address'] === ownAddress,
  )
  if (isTaken) return 'already_exists'
  // RFC 5321 §2.4: the local part is case-sensitive, and only the receiving host may interpret it.
  return { ...body, address: ownAddress, forward_to: target && `${target.local}@${target.name}` }
}

export function createRoute(world: World, chance: Chance): Intent | undefined {
  const parent = chooseProject(world, chance)
  if (parent.project?.resources.domains.length === 0 && !chance.happens(0.05)) return undefined
  const { is_active, ...rest } = configuration(world, parent.project, chance)
  const body = chance.happens(0.3) ? rest : { ...rest, is_active }
  return {
    operation: 'routing.create',
    ...inProject(parent),
    body,
    outcome: () =>
      parent.project ? created(parent.project, { ...rest, is_active: true, ...body }) : 'not_found',
  }
}

function created(project: Project, body: View): Outcome | string {
  const config = kept(project, body, undefined)
  if (typeof config === 'string') return config
  const fields = Object.fromEntries(routeFields.map((name) => [name, config[name]]))
  const { is_active, ...rest } = fields
  return {
    change: { type: 'route', before: null, after: fields },
    // Forwarding addresses are never confirmed in these tests.
    response: {
      ...{ id: anId, project_id: project.id, ...rest },
      ...{ forward_confirmed_at: null, is_active, created_at: aTime, updated_at: aTime },
    },
    version: 1,
    commit: (made: View) => remember(project, 'routing', 'route', made),
  }
}

export function editRoute(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'routing')
  if (!chosen) return undefined
  const { project, resource } = chosen
  const source = chance.happens(0.2) && resource ? resource.view : configuration(world, project, chance)
  const body = Object.fromEntries(routeFields.map((name) => [name, source[name]]))
  return {
    operation: 'routing.edit',
    ...onResource('routing', chosen),
    body,
    outcome() {
      if (!project || !resource) return 'not_found'
      const config = kept(project, body, resource)
      return typeof config === 'string' ? config : editOutcome(resource, project.acts, config)
    },
  }
}

export function deleteRoute(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'routing')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'routing.delete',
    ...onResource('routing', chosen),
    body: {},
    outcome: () => (project && resource ? deleteOutcome(project, 'routing', resource) : 'not_found'),
  }
}

/** The confirmation message is not modelled: the audit log changes, the route does not. */
export function requestConfirmation(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'routing')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'routing.request-confirmation',
    ...onResource('routing', chosen),
    // The operation does not change the version, so If-Match does not apply.
    target: null,
    body: {},
    outcome() {
      if (!project || !resource) return 'not_found'
      const { domain_id, address, forward_to } = resource.view
      const about = { domain_id, address, forward_to }
      return {
        change: { type: 'route', before: about, after: about },
        response: resource.view,
        version: resource.version,
        commit: () => ({ acts: project.acts, id: resource.id }),
      }
    },
  }
}
