import type { Chance } from '../../harness/random.ts'
import { absentId } from '../draw.ts'
import type { Intent, Outcome } from './intent.ts'
import { timeFrom } from './unknown.ts'
import {
  type AuditedAct,
  findById,
  type Noun,
  type Project,
  type Resource,
  type View,
  type World,
} from './world.ts'

/** Chooses the target of an operation, and defines the outcome of operations without side effects. */

/** Usually one of this sequence's projects, sometimes a nonexistent one. */
export function chooseProject(world: World, chance: Chance): { id: number; project: Project | undefined } {
  // Half of all requests use the first project, so that it accumulates resources.
  const likely = chance.happens(0.5) ? world.projects.slice(0, 1) : world.projects
  const id = chance.happens(0.02) ? absentId(chance) : chance.pick(likely).id
  return { id, project: findById(world.projects, id) }
}

export interface Chosen {
  project: Project | undefined
  resource: Resource | undefined
  params: { project_id: number; id: number }
}

/** Usually one of the project's resources; sometimes a deleted, a nonexistent or another project's resource. */
export function chooseResource(world: World, chance: Chance, noun: Noun): Chosen | undefined {
  const { id: project_id, project } = chooseProject(world, chance)
  const resources = (project ?? chance.pick(world.projects)).resources[noun]
  if (resources.length === 0 && !chance.happens(0.03)) return undefined
  const strangers = [
    absentId(chance),
    ...(project?.deletedIds[noun] ?? []).slice(-3),
    ...world.projects
      .filter((other) => other !== project)
      .flatMap((other) => other.resources[noun].map(({ id }) => id)),
  ]
  const id =
    resources.length > 0 && !chance.happens(0.06) ? chance.pick(resources).id : chance.pick(strangers)
  return { project, resource: project && findById(project.resources[noun], id), params: { project_id, id } }
}

type Aim = Pick<Intent, 'params' | 'exists' | 'target'>

export const onResource = (noun: Noun, { project, resource, params }: Chosen): Aim => ({
  params,
  exists: () => project !== undefined && findById(project.resources[noun], params.id) !== undefined,
  target: resource ?? null,
})

export const inProject = ({ id, project }: { id: number; project: Project | undefined }): Aim => ({
  params: { project_id: id },
  exists: () => project !== undefined,
  target: null,
})

export const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/** An edit that changes no value has no effect. */
export function editOutcome(resource: Resource, acts: AuditedAct[], changes: View): Outcome {
  const before = resource.view
  const isChanged = Object.entries(changes).some(([name, value]) => !isSame(before[name], value))
  const after = isChanged ? { ...before, ...changes, updated_at: timeFrom(before['updated_at']) } : before
  return {
    change: isChanged ? { type: resource.type, before, after: { ...before, ...changes } } : null,
    response: after,
    version: resource.version + (isChanged ? 1 : 0),
    commit(view: View) {
      if (isChanged) resource.version++
      resource.view = view
      return { acts, id: resource.id }
    },
  }
}

export function deleteOutcome(project: Project, noun: Noun, resource: Resource): Outcome {
  return {
    change: { type: resource.type, before: resource.view, after: null },
    response: null,
    version: null,
    commit() {
      project.resources[noun] = project.resources[noun].filter((one) => one !== resource)
      project.deletedIds[noun].push(resource.id)
      return { acts: project.acts, id: resource.id }
    },
  }
}

/** Adds a created resource to its project, with the values from the response. */
export function remember(project: Project, noun: Noun, type: string, view: View) {
  const id = Number(view['id'])
  project.resources[noun].push({ type, id, version: 1, view })
  return { acts: project.acts, id, location: `/v1/admin/projects/${project.id}/${noun}/${id}` }
}
