import type { Chance } from '../../harness/random.ts'
import { hostileTexts } from '../texts.ts'
import type { Intent, Outcome } from './intent.ts'
import { reasonOf } from './rules.ts'
import {
  chooseProject,
  chooseResource,
  editOutcome,
  inProject,
  isSame,
  onResource,
  remember,
} from './targets.ts'
import { anId, anything, aTime, timeFrom } from './unknown.ts'
import type { Project, Resource, View, World } from './world.ts'

/** Interventions, started by administrators only. No worker runs, so none expires. */

export const interventionFields = ['kind', 'public_note', 'pace_per_hour', 'expires_at'] as const
const configFields = ['pace_per_hour', 'public_note', 'expires_at'] as const
const kinds = ['warn', 'pace', 'hold', 'lock']
const mostInForce = 20

export const inForce = ({ resources }: Project, kind?: string): Resource[] =>
  resources.interventions.filter(
    ({ view }) => view['ended_at'] === null && (kind === undefined || view['kind'] === kind),
  )

/** When the oldest hold in force began; null if there is none. */
export const heldSince = (project: Project): unknown =>
  inForce(project, 'hold')[0]?.view['created_at'] ?? null

const hour = 3_600_000
const fromNow = (hours: number): string => new Date(Date.now() + hours * hour).toISOString()

/** In the past, and more than 366 days ahead. */
const refusedExpiries = ['2020-01-01T00:00:00.000Z', '9000-01-01T00:00:00.000Z']

const configuration = (chance: Chance, kind: string): View => ({
  pace_per_hour:
    chance.happens(0.9) === (kind === 'pace')
      ? chance.pick([1, 500, 1_000_000, 1 + chance.below(9_999)])
      : null,
  public_note: chance.pick([
    null,
    null,
    'Please clean up your list.',
    chance.pick(hostileTexts).slice(0, 500) || null,
  ]),
  expires_at: chance.happens(0.5)
    ? null
    : chance.happens(0.9)
      ? fromNow(1 + chance.below(300 * 24))
      : chance.pick(refusedExpiries),
})

/** The stored fields, or undefined if a rule rejects them. */
function kept(kind: unknown, config: View, before?: View): View | undefined {
  if ((kind === 'pace') !== (config['pace_per_hour'] !== null)) return undefined
  const note = config['public_note'] === null ? null : reasonOf(String(config['public_note']))
  if (note === undefined) return undefined
  const expiry = config['expires_at']
  const isKept = expiry === null || isSame(expiry, before?.['expires_at'])
  if (!isKept && refusedExpiries.includes(String(expiry))) return undefined
  return { pace_per_hour: config['pace_per_hour'], public_note: note, expires_at: expiry }
}

/** A new intervention on the wire. */
const started = ({ id }: Project, kind: string, config: View): View => ({
  id: anId,
  project_id: id,
  kind,
  source: 'administrator',
  policy_id: null,
  started_by: anything,
  reason: anything,
  public_note: config['public_note'],
  pace_per_hour: config['pace_per_hour'],
  evidence: null,
  expires_at: config['expires_at'],
  drains_before: null,
  ended_at: null,
  ended_by: null,
  appeal: null,
  created_at: aTime,
  updated_at: aTime,
})

const forever: View = { pace_per_hour: null, public_note: null, expires_at: null }

/** What locking, holding and their opposites do to the interventions. */
export interface Imposed {
  /** The new or ended intervention; undefined if nothing changes. */
  change: { before: View | null; after: View } | undefined
  commit: () => Resource | undefined
}

/** Starts an intervention without end, unless there is one. The limit does not apply. */
export function impose(project: Project, kind: 'hold' | 'lock'): Imposed {
  if (inForce(project, kind).some(({ view }) => view['expires_at'] === null))
    return { change: undefined, commit: () => undefined }
  const after = started(project, kind, forever)
  return {
    change: { before: null, after },
    commit() {
      const resource = { type: 'intervention', id: 0, version: 1, view: after }
      project.resources.interventions.push(resource)
      return resource
    },
  }
}

const ended = (view: View): View => ({
  ...view,
  ended_at: aTime,
  ended_by: 'administrator',
  updated_at: timeFrom(view['updated_at']),
})

export function lift(project: Project, kind: 'hold' | 'lock'): Imposed {
  const all = inForce(project, kind)
  const [first] = all
  return {
    change: first && { before: first.view, after: ended(first.view) },
    commit() {
      for (const resource of all)
        Object.assign(resource, { version: resource.version + 1, view: ended(resource.view) })
      return first
    },
  }
}

/** The project is locked while a lock is in force. Its version moves with the value. */
export function settleLock(project: Project): void {
  const is_locked = inForce(project, 'lock').length > 0
  if (project.view['is_locked'] === is_locked) return
  project.version++
  project.view = { ...project.view, is_locked, updated_at: timeFrom(project.view['updated_at']) }
}

export function createIntervention(world: World, chance: Chance): Intent {
  const chosen = chooseProject(world, chance)
  const kind = chance.pick(kinds)
  const config = configuration(chance, kind)
  const given = Object.fromEntries(
    configFields
      .filter((field) => config[field] !== null || chance.happens(0.5))
      .map((field) => [field, config[field]]),
  )
  return {
    operation: 'interventions.create',
    ...inProject(chosen),
    body: { kind, ...given },
    outcome() {
      const { project } = chosen
      if (!project) return 'not_found'
      if (inForce(project).length >= mostInForce) return 'limit_exceeded'
      const stored = kept(kind, config)
      if (!stored) return 'validation_failed'
      const after = started(project, kind, stored)
      return {
        change: { type: 'intervention', before: null, after },
        response: after,
        version: 1,
        commit(view: View) {
          const made = remember(project, 'interventions', 'intervention', view)
          settleLock(project)
          return made
        },
      }
    },
  }
}

export function editIntervention(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'interventions')
  if (!chosen) return undefined
  const { project, resource } = chosen
  const view = resource?.view ?? {}
  const config = configuration(chance, String(view['kind'] ?? 'warn'))
  const body =
    chance.happens(0.15) && resource
      ? Object.fromEntries(configFields.map((field) => [field, view[field]]))
      : config
  return {
    operation: 'interventions.edit',
    ...onResource('interventions', chosen),
    body,
    outcome() {
      if (!project || !resource) return 'not_found'
      if (resource.view['ended_at'] !== null) return 'already_ended'
      const stored = kept(resource.view['kind'], body, resource.view)
      return stored ? editOutcome(resource, project.acts, stored) : 'validation_failed'
    },
  }
}

export function endIntervention(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'interventions')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'interventions.end',
    ...onResource('interventions', chosen),
    target: null,
    body: {},
    outcome(): Outcome | string {
      if (!project || !resource) return 'not_found'
      if (resource.view['ended_at'] !== null) return 'already_ended'
      const after = ended(resource.view)
      return {
        change: { type: 'intervention', before: resource.view, after },
        response: after,
        version: resource.version + 1,
        commit(view: View) {
          Object.assign(resource, { version: resource.version + 1, view })
          settleLock(project)
          return { acts: project.acts, id: resource.id }
        },
      }
    },
  }
}
