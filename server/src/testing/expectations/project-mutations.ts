import {
  apiKeyConfiguration,
  endpointConfiguration,
  type fixtures,
  routeConfiguration,
} from '../fixtures/fixtures.ts'
import { mailRows } from '../fixtures/mail-rows.ts'
import type { Client } from '../harness/client.ts'
import type { TestDatabase } from '../harness/database.ts'
import type { Scenario } from './scenario.ts'

/** The scenarios of mutations.ts for endpoints, routes, API keys and messages. */
type Fixtures = ReturnType<typeof fixtures>
type Scenarios = Record<string, Scenario[]>
type Body = Record<string, unknown>

export function endpointScenarios(make: Fixtures, database: TestDatabase): Scenarios {
  const withEndpoint = async (below: string, body: Record<string, unknown>) => {
    const project = await make.makeProject()
    const { resource } = await make.makeEndpoint(project.id)
    return { path: `/projects/${project.id}/endpoints/${resource.id}${below}`, body }
  }
  return {
    'endpoints.create': [
      {
        what: "creates the project's first one",
        prepare: async () => ({
          path: `/projects/${(await make.makeProject()).id}/endpoints`,
          body: { ...endpointConfiguration },
        }),
      },
      {
        what: 'creates another, inactive one',
        async prepare() {
          const { id } = await make.makeProject()
          await make.makeEndpoint(id)
          return {
            path: `/projects/${id}/endpoints`,
            body: { ...endpointConfiguration, events: [], is_active: false },
          }
        },
      },
    ],
    'endpoints.edit': [
      {
        what: 'changes everything',
        prepare: () =>
          withEndpoint('', {
            name: 'Others',
            url: 'https://others.example.com/events',
            events: ['inbound.received'],
            is_active: false,
          }),
      },
      {
        what: 'activates it again',
        async prepare() {
          const { id } = await make.makeProject()
          const { resource } = await make.makeEndpoint(id, { is_active: false })
          return { path: `/projects/${id}/endpoints/${resource.id}`, body: { ...endpointConfiguration } }
        },
      },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: () => withEndpoint('', { ...endpointConfiguration }),
      },
    ],
    'endpoints.replay': [
      {
        what: 'replays the events in a time range',
        prepare: () =>
          withEndpoint('/replay', { from: '2026-01-14T00:00:00Z', to: '2026-01-14T01:00:00+00:30' }),
      },
      {
        what: 'replays one event',
        async prepare() {
          const { path, body } = await withEndpoint('/replay', {})
          const event_id = await mailRows(database).makeEvent(Number(path.split('/')[2]))
          return { path, body: { ...body, event_id } }
        },
      },
    ],
  }
}

export function routeScenarios(make: Fixtures): Scenarios {
  /** A project with a verified domain and an endpoint. */
  const place = async () => {
    const { id } = await make.makeProject()
    const domain = await make.makeDomain(id, { status: 'verified' })
    const { resource: endpoint } = await make.makeEndpoint(id)
    return { id, domain, endpoint, path: `/projects/${id}/routing` }
  }
  const addressRoute = ({ domain, endpoint }: Awaited<ReturnType<typeof place>>) => ({
    ...routeConfiguration,
    domain_id: domain.id,
    match: 'address' as const,
    address: `support@${domain.name}`,
    action: 'endpoint' as const,
    endpoint_id: endpoint.id,
  })
  const withRoute = async (body: (route: Body, domain: { id: number; name: string }) => Body) => {
    const there = await place()
    await make.makeRoute(there.id, { domain_id: there.domain.id, action: 'drop' })
    const { id } = await make.makeRoute(there.id, addressRoute(there))
    return { path: `${there.path}/${id}`, body: body(addressRoute(there), there.domain) }
  }
  return {
    'routing.create': [
      {
        what: 'routes an address to an endpoint',
        async prepare() {
          const there = await place()
          return { path: there.path, body: addressRoute(there) }
        },
      },
      {
        what: 'creates a forwarding catch-all for an unverified domain',
        async prepare() {
          const { id } = await make.makeProject()
          const domain = await make.makeDomain(id)
          const body = { ...routeConfiguration, domain_id: domain.id, action: 'forward' }
          return { path: `/projects/${id}/routing`, body: { ...body, forward_to: 'Ada@example.net' } }
        },
      },
      {
        what: 'creates an inactive one next to a catch-all',
        async prepare() {
          const there = await place()
          await make.makeRoute(there.id, { domain_id: there.domain.id })
          return { path: there.path, body: { ...addressRoute(there), is_active: false } }
        },
      },
    ],
    'routing.edit': [
      {
        what: 'forwards the mail instead',
        prepare: () =>
          withRoute((route) => ({
            ...route,
            action: 'forward',
            endpoint_id: null,
            forward_to: 'ada@example.net',
          })),
      },
      {
        what: 'changes the address',
        prepare: () => withRoute((route, { name }) => ({ ...route, address: `Sales@${name}` })),
      },
      {
        what: 'changes the domain and becomes its catch-all',
        async prepare() {
          const there = await place()
          const other = await make.makeDomain(there.id)
          const { id } = await make.makeRoute(there.id, addressRoute(there))
          const body = { ...routeConfiguration, domain_id: other.id, action: 'drop' }
          return { path: `${there.path}/${id}`, body }
        },
      },
      { what: 'deactivates it', prepare: () => withRoute((route) => ({ ...route, is_active: false })) },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: () =>
          withRoute((route, { name }) => ({ ...route, address: `SUPPORT@${name.toUpperCase()}` })),
      },
    ],
    'routing.request-confirmation': [
      {
        what: 'sends the target of a forward another request',
        async prepare() {
          const there = await place()
          const { id } = await make.makeRoute(there.id, {
            ...{ domain_id: there.domain.id, action: 'forward', forward_to: 'ada@example.net' },
          })
          return { path: `${there.path}/${id}/request-confirmation`, body: {} }
        },
      },
    ],
    'routing.delete': [
      {
        what: 'lets the catch-all handle the mail',
        prepare: () => withRoute(() => ({})),
      },
      {
        what: 'leaves no route for the mail',
        async prepare() {
          const { id, project_id } = await make.makeRoute((await make.makeProject()).id)
          return { path: `/projects/${project_id}/routing/${id}`, body: {} }
        },
      },
    ],
  }
}

export function apiKeyScenarios(make: Fixtures, database: TestDatabase): Scenarios {
  const create = (changes: Body) => async () => ({
    path: `/projects/${(await make.makeProject()).id}/api-keys`,
    body: { mode: 'live', ...apiKeyConfiguration, ...changes },
  })
  const withKey = async (below: string, body: Body, isUsed = false) => {
    const { id } = await make.makeProject()
    const { resource } = await make.makeApiKey(id)
    if (isUsed) {
      await database.query(
        'insert into control.api_key_stats (api_key_id, project_id, last_used_at) values ($1, $2, now())',
        [resource.id, id],
      )
    }
    return { path: `/projects/${id}/api-keys/${resource.id}${below}`, body }
  }
  return {
    'api-keys.create': [
      { what: 'creates a live key', prepare: create({}) },
      {
        what: 'creates an inactive test key for any client address',
        prepare: create({ mode: 'test', allowed_ips: [], is_active: false }),
      },
      {
        what: 'creates an expiring key for an unverified domain',
        async prepare() {
          const { id } = await make.makeProject()
          const bound = { domain_id: (await make.makeDomain(id)).id, expires_at: '2099-01-01T01:00:00+01:00' }
          return {
            path: `/projects/${id}/api-keys`,
            body: { mode: 'live', ...apiKeyConfiguration, ...bound },
          }
        },
      },
    ],
    'api-keys.edit': [
      {
        what: 'changes everything except the domain',
        prepare: () =>
          withKey('', {
            name: 'Newsletter',
            scopes: ['usage:read', 'messages:send'],
            domain_id: null,
            allowed_ips: ['198.51.100.4'],
            expires_at: '2099-06-30T12:00:00.5Z',
            is_active: false,
          }),
      },
      {
        what: 'binds it to a domain',
        async prepare() {
          const { path, body } = await withKey('', { ...apiKeyConfiguration })
          const domain = await make.makeDomain(Number(path.split('/')[2]))
          return { path, body: { ...body, domain_id: domain.id } }
        },
      },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: () =>
          withKey('', {
            ...apiKeyConfiguration,
            scopes: [...apiKeyConfiguration.scopes].reverse(),
            allowed_ips: ['192.0.2.0/24', '2001:DB8:0::7/128'],
          }),
      },
    ],
    'api-keys.rotate': [
      { what: 'replaces the secret', prepare: () => withKey('/rotate', {}) },
      { what: 'replaces one in use', prepare: () => withKey('/rotate', {}, true) },
    ],
    'api-keys.delete': [
      { what: 'deletes it', prepare: () => withKey('', {}) },
      { what: 'deletes one in use', prepare: () => withKey('', {}, true) },
    ],
  }
}

export function mailScenarios(make: Fixtures, admin: Client, database: TestDatabase): Scenarios {
  const { makeMail } = mailRows(database)
  /** A project with a queued message in each state. */
  const withMail = async (below: string) => {
    const { id } = await make.makeProject()
    for (const dispatch of ['ready', 'deferred', 'leased']) await makeMail(id, { status: 'queued', dispatch })
    const { messageId } = await makeMail(id, { sendIn: '1 day' })
    return { id, messageId, path: `/projects/${id}/queue${below}`, body: {} }
  }
  const after = async (act: 'hold' | 'lock', below: string) => {
    const there = await withMail(below)
    const reason = 'Needed'
    await (act === 'hold'
      ? admin.post(`/projects/${there.id}/queue/hold`, { reason })
      : admin.patch(`/projects/${there.id}`, { is_locked: true, reason }))
    return there
  }
  const withDiscard = async (status: 'running' | 'stopped', below: string) => {
    const { id, body } = await withMail('')
    const discard = await make.makeDiscard(id)
    const path = `/projects/${id}/queue/discards/${discard.id}`
    if (status === 'running') await admin.post(`${path}/resume`, { reason: 'Needed' })
    return { path: `${path}${below}`, body }
  }
  return {
    'queue.hold': [
      { what: 'holds the queued messages', prepare: () => withMail('/hold') },
      {
        what: "holds a locked project's messages",
        prepare: () => after('lock', '/hold'),
      },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: () => after('hold', '/hold'),
      },
    ],
    'queue.release': [
      { what: 'releases the messages', prepare: () => after('hold', '/release') },
      {
        what: 'releases the messages gradually',
        prepare: async () => ({ ...(await after('hold', '/release')), body: { per_minute: 100 } }),
      },
      {
        what: 'changes nothing',
        changesNothing: true,
        prepare: () => withMail('/release'),
      },
    ],
    'queue.discard': [
      { what: 'discards all queued messages', prepare: () => withMail('/discard') },
      {
        what: 'discards messages that match',
        prepare: async () => ({
          ...(await withMail('/discard')),
          body: { older_than: '2027-01-01T00:00:00Z', tag: 'newsletter', recipient_domain: 'Example.net' },
        }),
      },
    ],
    'discards.stop': [
      { what: 'stops a discard', prepare: () => withDiscard('running', '/stop') },
      { what: 'changes nothing', changesNothing: true, prepare: () => withDiscard('stopped', '/stop') },
    ],
    'discards.resume': [
      { what: 'resumes a discard', prepare: () => withDiscard('stopped', '/resume') },
      { what: 'changes nothing', changesNothing: true, prepare: () => withDiscard('running', '/resume') },
    ],
    'messages.cancel': [
      {
        what: 'cancels a scheduled message',
        async prepare() {
          const { id, messageId, body } = await withMail('')
          return { path: `/projects/${id}/messages/${messageId}/cancel`, body }
        },
      },
    ],
  }
}
