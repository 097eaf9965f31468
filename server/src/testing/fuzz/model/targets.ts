import type { Chance } from '../../harness/random.ts'
import { absentId } from '../draw.ts'
import type { Intent, Outcome } from './intent.ts'
import { timeFrom } from './unknown.ts'
import {
  type AuditedAct,
  findById,
  type Noun,
  type Project,
  type Thing,
  type View,
  type World,
} from './world.ts'

/** What an act is aimed at, and what it does where it touches nothing else. */

/** A project of this world, or now and then one that is not there. */
export function chooseProject(world: World, chance: Chance): { id: number; project: Project | undefined } {
  // One of them is used the most, so that it comes to hold something.
  const likely = chance.happens(0.5) ? world.projects.slice(0, 1) : world.projects
  const id = chance.happens(0.02) ? absentId(chance) : chance.pick(likely).id
  return { id, project: findById(world.projects, id) }
}

export interface Chosen {
  project: Project | undefined
  thing: Thing | undefined
  params: { project_id: number; id: number }
}

/** A thing of a project; now and then one that is gone, of another project, or never was. */
export function chooseThing(world: World, chance: Chance, noun: Noun): Chosen | undefined {
  const { id: project_id, project } = chooseProject(world, chance)
  const things = (project ?? chance.pick(world.projects)).things[noun]
  if (things.length === 0 && !chance.happens(0.03)) return undefined
  const strangers = [
    absentId(chance),
    ...(project?.gone[noun] ?? []).slice(-3),
    ...world.projects
      .filter((other) => other !== project)
      .flatMap((other) => other.things[noun].map(({ id }) => id)),
  ]
  const id = things.length > 0 && !chance.happens(0.06) ? chance.pick(things).id : chance.pick(strangers)
  return { project, thing: project && findById(project.things[noun], id), params: { project_id, id } }
}

type Aim = Pick<Intent, 'params' | 'exists' | 'target'>

export const onThing = (noun: Noun, { project, thing, params }: Chosen): Aim => ({
  params,
  exists: () => project !== undefined && findById(project.things[noun], params.id) !== undefined,
  target: thing ?? null,
})

export const inProject = ({ id, project }: { id: number; project: Project | undefined }): Aim => ({
  params: { project_id: id },
  exists: () => project !== undefined,
  target: null,
})

export const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/** Nothing changes where all is as it was. */
export function editOutcome(thing: Thing, acts: AuditedAct[], changes: View): Outcome {
  const before = thing.view
  const isChanged = Object.entries(changes).some(([name, value]) => !isSame(before[name], value))
  const after = isChanged ? { ...before, ...changes, updated_at: timeFrom(before['updated_at']) } : before
  return {
    change: isChanged ? { type: thing.type, before, after: { ...before, ...changes } } : null,
    answer: after,
    version: thing.version + (isChanged ? 1 : 0),
    commit(view: View) {
      if (isChanged) thing.version++
      thing.view = view
      return { acts, id: thing.id }
    },
  }
}

export function deleteOutcome(project: Project, noun: Noun, thing: Thing): Outcome {
  return {
    change: { type: thing.type, before: thing.view, after: null },
    answer: null,
    version: null,
    commit() {
      project.things[noun] = project.things[noun].filter((one) => one !== thing)
      project.gone[noun].push(thing.id)
      return { acts: project.acts, id: thing.id }
    },
  }
}

/** Adds what was made to its project, with what the answer told of it. */
export function remember(project: Project, noun: Noun, type: string, view: View) {
  const id = Number(view['id'])
  project.things[noun].push({ type, id, version: 1, view })
  return { acts: project.acts, id, location: `/v1/admin/projects/${project.id}/${noun}/${id}` }
}
