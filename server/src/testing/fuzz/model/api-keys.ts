import type { Chance } from '../../harness/random.ts'
import { someOf } from '../draw.ts'
import { nameText } from '../texts.ts'
import { domainFor } from './domains.ts'
import { type Intent, namedIn, type Outcome } from './intent.ts'
import {
  chooseProject,
  chooseResource,
  deleteOutcome,
  editOutcome,
  inProject,
  onResource,
  remember,
} from './targets.ts'
import { anId, aText, aTime, timeFrom } from './unknown.ts'
import { findById, type Project, type Resource, type View, type World } from './world.ts'

export const apiKeyFields = ['name', 'scopes', 'domain_id', 'allowed_ips', 'expires_at', 'is_active'] as const

const scopes = [
  'messages:send',
  'messages:read',
  'suppressions:read',
  'suppressions:write',
  'domains:read',
  'domains:write',
  'endpoints:read',
  'endpoints:write',
  'routing:read',
  'routing:write',
  'usage:read',
]

/** The value sent and the value stored. Undefined means that the service rejects it. */
const networks: readonly (readonly [given: string, kept: string | undefined])[] = [
  ['192.0.2.7', '192.0.2.7'],
  ['192.0.2.7/32', '192.0.2.7'],
  ['192.0.2.0/24', '192.0.2.0/24'],
  ['10.0.0.0/8', '10.0.0.0/8'],
  ['2001:db8::/32', '2001:db8::/32'],
  ['2001:DB8:0:0::1', '2001:db8::1'],
  ['2001:db8::1/128', '2001:db8::1'],
  ['', undefined],
  ['192.0.2.7/24', undefined],
  ['192.0.2.0/33', undefined],
  ['192.0.2', undefined],
  ['192.0.2.256', undefined],
  ['0x7f.1', undefined],
  ['example.com', undefined],
  ['2001:db8::1/32', undefined],
  ['2001:db8::/129', undefined],
  ['fe80::1%eth0', undefined],
  ["'; --", undefined],
]

const moments: readonly (readonly [given: string | null, kept: string | null | undefined])[] = [
  [null, null],
  ['2099-01-01T00:00:00Z', '2099-01-01T00:00:00.000Z'],
  ['2099-01-01T00:00:00+02:00', '2098-12-31T22:00:00.000Z'],
  ['2099-06-30T12:34:56.789Z', '2099-06-30T12:34:56.789Z'],
  ['2001-01-01T00:00:00Z', undefined],
]

function configuration(world: World, project: Project | undefined, chance: Chance): View {
  const allowed = someOf(
    chance,
    networks.slice(0, 7).filter((_, n) => ![1, 6].includes(n)),
  ).slice(0, 4)
  const [odd] = chance.pick(networks)
  const [expires_at] = chance.pick(chance.happens(0.1) ? moments : moments.slice(0, 4))
  const chosen = someOf(chance, scopes)
  return {
    name: nameText(chance),
    scopes: chosen.length === 0 ? [chance.pick(scopes)] : chosen,
    domain_id: chance.happens(0.6) ? null : domainFor(world, project, chance).id,
    allowed_ips: [...new Set([...allowed.map(([given]) => given), ...(chance.happens(0.1) ? [odd] : [])])],
    expires_at,
    is_active: chance.happens(0.8),
  }
}

function kept(project: Project, body: View): View | undefined {
  const named = namedIn(body)
  const addresses = (body['allowed_ips'] as string[]).map(
    (ip) => networks.find(([given]) => given === ip)?.[1],
  )
  const expires_at = moments.find(([given]) => given === body['expires_at'])?.[1]
  const domain_id = body['domain_id']
  const isBound = domain_id === null || findById(project.resources.domains, domain_id) !== undefined
  const isUnique = new Set(addresses).size === addresses.length
  if (!named || !isBound || !isUnique || addresses.includes(undefined) || expires_at === undefined)
    return undefined
  const chosen = body['scopes'] as string[]
  return {
    ...body,
    ...named,
    allowed_ips: addresses,
    expires_at,
    scopes: scopes.filter((one) => chosen.includes(one)),
  }
}

const secretOf = (mode: string) => aText(new RegExp(`^pk_${mode}_[0-9A-Za-z]{49}$`))
const prefixOf = (mode: string) => aText(new RegExp(`^pk_${mode}_[0-9A-Za-z]{4}$`))

export function createApiKey(world: World, chance: Chance): Intent {
  const parent = chooseProject(world, chance)
  const { is_active, ...rest } = configuration(world, parent.project, chance)
  const mode = chance.pick(['live', 'test'])
  const body = chance.happens(0.3) ? { mode, ...rest } : { mode, ...rest, is_active }
  return {
    operation: 'api-keys.create',
    ...inProject(parent),
    body,
    outcome: () =>
      parent.project ? created(parent.project, mode, { ...rest, is_active: true, ...body }) : 'not_found',
  }
}

function created(project: Project, mode: string, body: View): Outcome | string {
  const config = kept(project, body)
  if (!config) return 'validation_failed'
  const { name, ...others } = Object.fromEntries(apiKeyFields.map((field) => [field, config[field]]))
  const view = {
    id: anId,
    project_id: project.id,
    name,
    prefix: prefixOf(mode),
    ...others,
    last_used_at: null,
    created_at: aTime,
    updated_at: aTime,
  }
  return {
    change: { type: 'api_key', before: null, after: { name, ...others } },
    response: { resource: view, secret: secretOf(mode) },
    version: 1,
    commit({ resource: created, secret }: { resource: View; secret: string }) {
      requirePrefix(created, secret)
      return remember(project, 'api-keys', 'api_key', created)
    },
  }
}

function requirePrefix({ prefix }: View, secret: string): void {
  if (!secret.startsWith(String(prefix)))
    throw new Error(`prefix is ${prefix} and not the secret's beginning`)
}

export function editApiKey(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'api-keys')
  if (!chosen) return undefined
  const { project, resource } = chosen
  const source = configuration(world, project, chance)
  const known =
    chance.happens(0.2) && resource
      ? { ...source, ...without(resource.view, 'allowed_ips', 'expires_at') }
      : source
  const body = Object.fromEntries(apiKeyFields.map((name) => [name, known[name]]))
  return {
    operation: 'api-keys.edit',
    ...onResource('api-keys', chosen),
    body,
    outcome() {
      if (!project || !resource) return 'not_found'
      const config = kept(project, body)
      return config ? editOutcome(resource, project.acts, config) : 'validation_failed'
    },
  }
}

const without = (view: View, ...names: string[]): View =>
  Object.fromEntries(Object.entries(view).filter(([name]) => !names.includes(name)))

export function rotateApiKey(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'api-keys')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'api-keys.rotate',
    ...onResource('api-keys', chosen),
    body: {},
    outcome: () => (project && resource ? rotated(project, resource) : 'not_found'),
  }
}

function rotated(project: Project, resource: Resource): Outcome {
  const before = resource.view
  const mode = String(before['prefix']).split('_')[1] ?? ''
  const after = { ...before, prefix: prefixOf(mode), updated_at: timeFrom(before['updated_at']) }
  return {
    change: { type: 'api_key', before, after: before },
    response: { resource: after, secret: secretOf(mode) },
    version: resource.version + 1,
    commit({ resource: created, secret }: { resource: View; secret: string }) {
      requirePrefix(created, secret)
      resource.version++
      resource.view = created
      return {
        acts: project.acts,
        id: resource.id,
        location: `/v1/admin/projects/${project.id}/api-keys/${resource.id}`,
      }
    },
  }
}

export function deleteApiKey(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'api-keys')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'api-keys.delete',
    ...onResource('api-keys', chosen),
    body: {},
    outcome: () => (project && resource ? deleteOutcome(project, 'api-keys', resource) : 'not_found'),
  }
}
