import type { Chance } from '../../harness/random.ts'
import { someOf } from '../draw.ts'
import { nameText } from '../texts.ts'
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
import type { Project, Resource, View, World } from './world.ts'

export const endpointFields = ['name', 'url', 'events', 'is_active'] as const

/** In stored order. */
const eventTypes = [
  'message.accepted',
  'message.sent',
  'message.delivered',
  'message.deferred',
  'message.bounced',
  'message.failed',
  'message.complained',
  'message.suppressed',
  'inbound.received',
  'domain.verified',
  'domain.failed',
  'endpoint.disabled',
  'project.locked',
  'project.unlocked',
  'project.intervened',
  'project.reinstated',
]

/** The URL sent and the URL stored, normalized by the URL Standard. Undefined means that the service rejects it. */
const addresses: readonly (readonly [given: string, kept: string | undefined])[] = [
  ['https://hooks.example.com/postern', 'https://hooks.example.com/postern'],
  ['https://hooks.example.com/v2?a=b&c=%20', 'https://hooks.example.com/v2?a=b&c=%20'],
  ['HTTPS://Hooks.Example.COM', 'https://hooks.example.com/'],
  ['https://example.com:443/x', 'https://example.com/x'],
  ['https://example.com:8443/x', 'https://example.com:8443/x'],
  ['https://example.com/a/../b/./c', 'https://example.com/b/c'],
  ['https://example.com/%2e%2e/x', 'https://example.com/x'],
  ['https://münchen.example/ü', 'https://xn--mnchen-3ya.example/%C3%BC'],
  ['https://ⓔxample.com/', 'https://example.com/'],
  ['https://8.8.8.8/', 'https://8.8.8.8/'],
  ['https://0x08.8.8.8/', 'https://8.8.8.8/'],
  ['https://[2606:4700:4700::1111]/x', 'https://[2606:4700:4700::1111]/x'],
  [`https://example.com/${'p'.repeat(2028)}`, `https://example.com/${'p'.repeat(2028)}`],
  ["https://example.com/'; drop table x; --".replaceAll(' ', '+'), "https://example.com/';+drop+table+x;+--"],
  ['', undefined],
  ['http://example.com/', undefined],
  ['ftp://example.com/', undefined],
  ['javascript:alert(1)', undefined],
  ['//example.com/', undefined],
  ['https:example.com', undefined],
  ['https:///example.com', undefined],
  ['https://', undefined],
  ['https://example/', undefined],
  ['https://localhost/', undefined],
  ['https://a.localhost/', undefined],
  ['https://printer.local/', undefined],
  ['https://vault.internal/', undefined],
  ['https://127.0.0.1/', undefined],
  ['https://2130706433/', undefined],
  ['https://0x7f.1/', undefined],
  ['https://017700000001/', undefined],
  ['https://10.1.2.3/', undefined],
  ['https://172.16.0.1/', undefined],
  ['https://192.168.0.1/', undefined],
  ['https://169.254.169.254/latest/meta-data/', undefined],
  ['https://100.64.0.1/', undefined],
  ['https://224.0.0.1/', undefined],
  ['https://0.0.0.0/', undefined],
  ['https://255.255.255.255/', undefined],
  ['https://[::1]/', undefined],
  ['https://[::]/', undefined],
  ['https://[::ffff:127.0.0.1]/', undefined],
  ['https://[fe80::1]/', undefined],
  ['https://[fd00::1]/', undefined],
  ['https://[64:ff9b::7f00:1]/', undefined],
  ['https://[2001:db8::1]/', undefined],
  ['https://user@example.com/', undefined],
  ['https://user:secret@example.com/', undefined],
  ['https://example.com/#', undefined],
  ['https://example.com/#part', undefined],
  ['https://exa mple.com/', undefined],
  ['https://example.com/a b', undefined],
  ['https://example.com\\@evil.example', undefined],
  ['https://example.com/\r\nHost: evil.example', undefined],
  ['https://a..b.example.com/', undefined],
  ['https://-a.example.com/', undefined],
  ['https://example.com:99999/', undefined],
  [`https://example.com/${'ü'.repeat(1000)}`, undefined],
  [`https://${'a.'.repeat(130)}example.com/`, undefined],
]

const goodAddresses = addresses.filter(([, kept]) => kept !== undefined)

function configuration(chance: Chance): View {
  const [url] = chance.happens(0.85) ? chance.pick(goodAddresses) : chance.pick(addresses)
  return { name: nameText(chance), url, events: someOf(chance, eventTypes), is_active: chance.happens(0.7) }
}

function kept(body: View): View | undefined {
  const named = namedIn(body)
  const url = addresses.find(([given]) => given === body['url'])?.[1]
  if (!named || url === undefined) return undefined
  const chosen = body['events'] as string[]
  return { ...body, ...named, url, events: eventTypes.filter((type) => chosen.includes(type)) }
}

const secretForm = aText(/^whsec_[A-Za-z0-9+/]{43}=$/)
const hint = aText(/^[A-Za-z0-9+/]{4}$/)

export function createEndpoint(world: World, chance: Chance): Intent {
  const parent = chooseProject(world, chance)
  const { is_active, ...rest } = configuration(chance)
  const body = chance.happens(0.3) ? rest : { ...rest, is_active }
  return {
    operation: 'endpoints.create',
    ...inProject(parent),
    body,
    outcome: () => (parent.project ? created(parent.project, { is_active: true, ...body }) : 'not_found'),
  }
}

function created(project: Project, body: View): Outcome | string {
  const config = kept(body)
  if (!config) return 'validation_failed'
  const view = {
    id: anId,
    project_id: project.id,
    name: config['name'],
    url: config['url'],
    events: config['events'],
    is_active: config['is_active'],
    disabled_reason: null,
    secret_hint: hint,
    secret_rotated_at: null,
    last_success_at: null,
    consecutive_failures: 0,
    created_at: aTime,
    updated_at: aTime,
  }
  return {
    change: { type: 'endpoint', before: null, after: config },
    response: { resource: view, secret: secretForm },
    version: 1,
    commit({ resource: created, secret }: { resource: View; secret: string }) {
      requireHint(created, secret)
      return remember(project, 'endpoints', 'endpoint', created)
    },
  }
}

function requireHint({ secret_hint }: View, secret: string): void {
  if (secret_hint !== secret.slice(-5, -1))
    throw new Error(
      `secret_hint is ${secret_hint} and not the secret's last four characters before the padding`,
    )
}

export function editEndpoint(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'endpoints')
  if (!chosen) return undefined
  const { project, resource } = chosen
  const source = chance.happens(0.15) && resource ? resource.view : configuration(chance)
  // The values of a stored endpoint are valid, also when the request is repeated after a change.
  const isStored = source === resource?.view
  const body = Object.fromEntries(endpointFields.map((name) => [name, source[name]]))
  return {
    operation: 'endpoints.edit',
    ...onResource('endpoints', chosen),
    body,
    outcome() {
      if (!project || !resource) return 'not_found'
      const config = isStored ? body : kept(body)
      return config ? editOutcome(resource, project.acts, config) : 'validation_failed'
    },
  }
}

export function rotateEndpoint(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'endpoints')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'endpoints.rotate',
    ...onResource('endpoints', chosen),
    body: {},
    outcome: () => (project && resource ? rotated(project, resource) : 'not_found'),
  }
}

function rotated(project: Project, resource: Resource): Outcome {
  const before = resource.view
  const updated_at = timeFrom(before['updated_at'])
  const after = { ...before, secret_hint: hint, secret_rotated_at: updated_at, updated_at }
  return {
    change: { type: 'endpoint', before, after: before },
    response: { resource: after, secret: secretForm },
    version: resource.version + 1,
    commit({ resource: created, secret }: { resource: View; secret: string }) {
      requireHint(created, secret)
      resource.version++
      resource.view = created
      return {
        acts: project.acts,
        id: resource.id,
        location: `/v1/admin/projects/${project.id}/endpoints/${resource.id}`,
      }
    },
  }
}

export function deleteEndpoint(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'endpoints')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'endpoints.delete',
    ...onResource('endpoints', chosen),
    body: {},
    outcome() {
      if (!project || !resource) return 'not_found'
      const isUsed = project.resources.routing.some(({ view }) => view['endpoint_id'] === resource.id)
      return isUsed ? 'in_use' : deleteOutcome(project, 'endpoints', resource)
    },
  }
}
