import type { Chance } from '../../harness/random.ts'
import type { Intent, Outcome } from './intent.ts'
import type { Question } from './question.ts'
import { chooseThing, onThing } from './targets.ts'
import type { Project, Thing, View, World } from './world.ts'

/** What is asked of the queue of an endpoint. No worker runs: what is asked for stays asked for, and nothing is delivered. */

export const orderedFields = ['is_test_requested', 'event_id', 'from', 'to', 'only_undelivered'] as const

const isOff = ({ view }: Thing): boolean => view['is_active'] !== true

const ordered = (project: Project, thing: Thing, before: View, after: View, answer: View): Outcome => ({
  change: { type: 'endpoint', before, after },
  answer,
  version: null,
  commit: () => ({ acts: project.acts, id: thing.id }),
})

export function testEndpoint(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseThing(world, chance, 'endpoints')
  if (!chosen) return undefined
  const { project, thing } = chosen
  return {
    operation: 'endpoints.test',
    ...onThing('endpoints', chosen),
    // It moves no version, so that there is none to compare.
    target: null,
    body: {},
    outcome() {
      if (!project || !thing) return 'not_found'
      if (isOff(thing)) return 'validation_failed'
      const answer = { endpoint_id: thing.id, event_type: 'endpoint.test' }
      return ordered(project, thing, { is_test_requested: false }, { is_test_requested: true }, answer)
    },
  }
}

/** Nothing that was ever told has this id. */
const noEvent = '00000000-0000-7000-8000-000000000000'

/** As asked for, and as understood; undefined is refused. */
const requests: readonly (readonly [asked: View, understood: View | undefined])[] = [
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

const nothing = { event_id: null, from: null, to: null, only_undelivered: null }

export function replayEndpoint(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseThing(world, chance, 'endpoints')
  if (!chosen) return undefined
  const { project, thing } = chosen
  const [body, understood] = chance.pick(chance.happens(0.6) ? requests.slice(0, 3) : requests)
  return {
    operation: 'endpoints.replay',
    ...onThing('endpoints', chosen),
    target: null,
    body,
    outcome() {
      if (!project || !thing) return 'not_found'
      if (understood === undefined || isOff(thing)) return 'validation_failed'
      if ('event_id' in understood) return 'not_found'
      if (project.replaying.includes(thing.id)) return 'request_in_progress'
      const after = { ...nothing, ...understood }
      const outcome = ordered(project, thing, nothing, after, { endpoint_id: thing.id, ...after })
      return {
        ...outcome,
        commit(answer: never) {
          project.replaying.push(thing.id)
          return outcome.commit(answer)
        },
      }
    },
  }
}

export function askForAttempts(world: World, chance: Chance): Question | undefined {
  const chosen = chooseThing(world, chance, 'endpoints')
  if (!chosen) return undefined
  const filters = Object.entries({ event_id: noEvent, outcome: chance.pick(['delivered', 'failed', 'gone']) })
  return {
    operation: 'endpoints.attempts',
    params: chosen.params,
    query: Object.fromEntries(filters.filter(() => chance.happens(0.3))),
    expected: chosen.thing && { list: [] },
  }
}
