import type { Chance } from '../../harness/random.ts'
import { hostileTexts } from '../texts.ts'
import type { Intent } from './intent.ts'
import { noteOf } from './rules.ts'
import {
  chooseProject,
  chooseResource,
  deleteOutcome,
  editOutcome,
  inProject,
  onResource,
  remember,
} from './targets.ts'
import { anId, anything, aTime } from './unknown.ts'
import type { View, World } from './world.ts'

/** Notes of administrators about a project. */

export const noteFields = ['text'] as const
const mostNotes = 200

const textOf = (chance: Chance): string =>
  chance.pick([
    'Ada from billing called.\nThe invoices go out on the 28th.',
    ` Ticket ${chance.below(10_000)}\r\nis solved. `,
    'n'.repeat(4000),
    chance.pick(hostileTexts) || ' ',
  ])

export function createNote(world: World, chance: Chance): Intent {
  const chosen = chooseProject(world, chance)
  const { id: project_id, project } = chosen
  const text = textOf(chance)
  return {
    operation: 'notes.create',
    ...inProject(chosen),
    body: { text },
    outcome() {
      if (!project) return 'not_found'
      const stored = noteOf(text)
      if (stored === undefined) return 'validation_failed'
      if (project.resources.notes.length >= mostNotes) return 'limit_exceeded'
      const times = { created_at: aTime, updated_at: aTime }
      const after = { id: anId, project_id, text: stored, author: anything, version: 1, ...times }
      return {
        change: { type: 'note', before: null, after },
        response: after,
        version: 1,
        commit: (view: View) => remember(project, 'notes', 'note', view),
      }
    },
  }
}

export function editNote(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'notes')
  if (!chosen) return undefined
  const { project, resource } = chosen
  const text = chance.happens(0.15) && resource ? String(resource.view['text']) : textOf(chance)
  return {
    operation: 'notes.edit',
    ...onResource('notes', chosen),
    body: { text },
    outcome() {
      if (!project || !resource) return 'not_found'
      const stored = noteOf(text)
      if (stored === undefined) return 'validation_failed'
      const changes = stored === resource.view['text'] ? {} : { text: stored, version: resource.version + 1 }
      return editOutcome(resource, project.acts, changes)
    },
  }
}

export function deleteNote(world: World, chance: Chance): Intent | undefined {
  const chosen = chooseResource(world, chance, 'notes')
  if (!chosen) return undefined
  const { project, resource } = chosen
  return {
    operation: 'notes.delete',
    ...onResource('notes', chosen),
    body: {},
    outcome: () => (project && resource ? deleteOutcome(project, 'notes', resource) : 'not_found'),
  }
}
