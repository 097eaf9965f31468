import type { Chance } from '../../harness/random.ts'
import type { ExpectedRead } from './expected-read.ts'
import type { Intent, Outcome } from './intent.ts'
import { chooseResource, onResource } from './targets.ts'
import type { Project, Resource, View, World } from './world.ts'

/** Test and replay requests for endpoints. No worker runs, so requests stay pending and nothing is delivered. */

export const enqueuedFields = ['is_test_requested', 'event_id', 'from', 'to', 'only_undelivered'] as const

const isOff = ({ view }: Resource): boolean => view['is_active'] !== true

const enqueued = (
  project: Project,
  resource: Resource,
  before: View,
  after: View,
  response: View,
): Outcome => ({
  change: { type: 'endpoint', before, after },
  response,
  version: null,
  commit: () => ({ acts: project.acts, id: resource.id }),
})

export function testEndpoint(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'endpoints')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'endpoints.test',
    ...onResource('endpoints', chosen),
    // The operation does not change the version, so If-Match does not apply.
    target: null,
    body: {},
    outcome() {
      if (!project || !resource) return 'not_found'
      if (isOff(resource)) return 'validation_failed'
      const response = { endpoint_id: resource.id, event_type: 'endpoint.test' }
      return enqueued(project, resource, { is_test_requested: false }, { is_test_requested: true }, response)
    },
  }
}

/** The id of an event that does not exist. */
const noEvent = '00000000-0000-7000-8000-000000000000'

/** The request body and its normalized form. Undefined means that the service rejects it. */
const requests: readonly (readonly [sent: View, normalized: View | undefined])[] = [
  [
    { from: '2020-02-29T00:00:00Z', to: '2020-02-29T06:00:00Z' },
    { from: '2020-02-29T00:00:00.000Z', to: '2020-02-29T06:00:00.000Z', only_undelivered: true },
  ],
  [
    { from: '2020-01-01T01:00:00+01:00', to: '2020-01-01t00:00:00.0015z', only_undelivered: false },
    { from: '2020-01-01T00:00:00.000Z', to: '2020-01-01T00:00:00.001Z', only_undelivered: false },
  ],
  [{ event_id: noEvent }, { event_id: noEvent }],
  [{}, undefined],
  [{ only_undelivered: true }, undefined],
  [{ from: '2020-01-01T00:00:00Z' }, undefined],
  [{ to: '2020-01-01T00:00:00Z', only_undelivered: false }, undefined],
  [{ event_id: noEvent, from: '2020-01-01T00:00:00Z', to: '2020-01-02T00:00:00Z' }, undefined],
  [{ event_id: noEvent, to: '2020-01-02T00:00:00Z' }, undefined],
  [{ event_id: noEvent, only_undelivered: true }, undefined],
  [{ from: '2020-01-02T00:00:00Z', to: '2020-01-01T00:00:00Z' }, undefined],
  [{ from: '2020-01-01T00:00:00Z', to: '2020-01-01T01:00:00+01:00' }, undefined],
  [{ from: '2020-01-01T00:00:00Z', to: '2098-01-01T00:00:00Z' }, undefined],
  [{ from: '2098-01-01T00:00:00Z', to: '2098-01-01T01:00:00Z' }, undefined],
  [{ from: '1970-01-01T00:00:00Z', to: '2020-01-01T00:00:00Z' }, undefined],
]

const unset = { event_id: null, from: null, to: null, only_undelivered: null }

export function replayEndpoint(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'endpoints')
  if (!chosen) return undefined
  const { project, resource } = chosen
  const [body, normalized] = chance.pick(chance.happens(0.6) ? requests.slice(0, 3) : requests)
  return {
    operation: 'endpoints.replay',
    ...onResource('endpoints', chosen),
    target: null,
    body,
    outcome() {
      if (!project || !resource) return 'not_found'
      if (normalized === undefined || isOff(resource)) return 'validation_failed'
      if ('event_id' in normalized) return 'not_found'
      if (project.replaying.includes(resource.id)) return 'request_in_progress'
      const after = { ...unset, ...normalized }
      const outcome = enqueued(project, resource, unset, after, { endpoint_id: resource.id, ...after })
      return {
        ...outcome,
        commit(response: never) {
          project.replaying.push(resource.id)
          return outcome.commit(response)
        },
      }
    },
  }
}

export function nextAttemptsRead(world: World, chance: Chance): ExpectedRead | undefined {
  const chosen = chooseResource(world, chance, 'endpoints')
  if (!chosen) return undefined
  const filters = Object.entries({ event_id: noEvent, outcome: chance.pick(['delivered', 'failed', 'gone']) })
  return {
    operation: 'endpoints.attempts',
    params: chosen.params,
    query: Object.fromEntries(filters.filter(() => chance.happens(0.3))),
    expected: chosen.resource && { list: [] },
  }
}
