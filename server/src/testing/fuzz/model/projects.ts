import type { Chance } from '../../harness/random.ts'
import { absentId, someOf } from '../draw.ts'
import { nameText } from '../texts.ts'
import { type Intent, namedIn, type Outcome } from './intent.ts'
import { type Imposed, impose, lift } from './interventions.ts'
import { memberOnWire, ownerAfter } from './members.ts'
import { chooseProject, isSame } from './targets.ts'
import { anId, aTime, timeFrom } from './unknown.ts'
import {
  emptyProject,
  findById,
  type GlobalResource,
  type LimitException,
  type Project,
  planInForce,
  projectOnWire,
  type View,
  type World,
} from './world.ts'

export const projectFields = [
  'name',
  'user_id',
  'reputation_score',
  'is_locked',
  'allow_service_mta',
  'plan_id',
  'admin_plan_id',
  'admin_subscription_status',
] as const
export const billingFields = [
  'billing_subscription_id',
  'billing_subscription_status',
  'billing_product_id',
] as const

const statuses = ['trialing', 'active', 'past_due', 'canceled', 'paused', null]
/** Locks, scores and overrides. */
const reasoned = [
  'is_locked',
  'reputation_score',
  'admin_plan_id',
  'admin_subscription_status',
  'allow_service_mta',
  'user_id',
]

const userId = (world: World, chance: Chance): number =>
  chance.happens(0.06) ? absentId(chance) : chance.pick(world.users).id
const planId = (world: World, chance: Chance): number =>
  chance.happens(0.06) ? absentId(chance) : chance.pick(world.plans).id

/** True if the user cannot become the owner of a project. */
const refusesUser = (world: World, id: unknown): boolean =>
  findById(world.users, id)?.view['is_active'] !== true

/** The error code if the plan cannot be assigned to a project that does not already have it. */
function planFault(world: World, id: unknown): string | undefined {
  const plan = findById(world.plans, id)
  if (!plan) return 'validation_failed'
  return plan.view['is_active'] === true ? undefined : 'plan_inactive'
}

export function createProject(
  world: World,
  chance: Chance,
  body = { name: nameText(chance), user_id: userId(world, chance), plan_id: planId(world, chance) },
): Intent {
  return {
    operation: 'projects.create',
    params: {},
    body,
    exists: () => true,
    target: null,
    outcome() {
      if (refusesUser(world, body.user_id)) return 'validation_failed'
      const fault = planFault(world, body.plan_id)
      if (fault) return fault
      const named = namedIn(body)
      if (!named) return 'validation_failed'
      return created(world, { ...body, ...named })
    },
  }
}

function created(world: World, { name, user_id, plan_id }: View): Outcome {
  const view = {
    id: anId,
    user_id,
    reputation_score: 100,
    bounced: 0,
    failed: 0,
    complained: 0,
    name,
    created_at: aTime,
    updated_at: aTime,
    is_locked: false,
    allow_service_mta: false,
    plan_id,
    admin_plan_id: null,
    billing_subscription_id: null,
    billing_subscription_status: null,
    billing_product_id: null,
    admin_subscription_status: null,
  }
  const { max_users: value } = planInForce(world, { view }).view as { max_users: number }
  return {
    change: { type: 'project', before: null, after: configOf(view) },
    limit: value < 1 ? { limit: 'max_users', value, count: 1 } : null,
    response: projectOnWire(world, { view }),
    version: 1,
    commit({ plan, ...rest }: View) {
      const id = Number(rest['id'])
      const project: Project = { type: 'project', id, version: 1, view: rest, ...emptyProject() }
      project.resources.members.push(memberOnWire(project, findById(world.users, user_id)))
      world.projects.push(project)
      return { acts: project.acts, id, location: `/v1/admin/projects/${id}` }
    },
  }
}

const configOf = (view: View): View =>
  Object.fromEntries([...projectFields, ...billingFields].map((name) => [name, view[name]]))

export function editProject(world: World, chance: Chance): Intent {
  const { id, project } = chooseProject(world, chance)
  const wanted: View = {
    name: nameText(chance),
    user_id: userId(world, chance),
    reputation_score: chance.pick([0, 1, 35, 99, 100, chance.below(101)]),
    is_locked: chance.happens(0.4),
    allow_service_mta: chance.happens(0.6),
    plan_id: planId(world, chance),
    admin_plan_id: chance.happens(0.4) ? null : planId(world, chance),
    admin_subscription_status: chance.pick(statuses),
  }
  const source = chance.happens(0.12) && project ? project.view : wanted
  const names = chance.happens(0.1) ? someOf(chance, projectFields) : [chance.pick(projectFields)]
  const body = Object.fromEntries(names.map((name) => [name, source[name]]))
  return {
    ...intentOn(id, project),
    operation: 'projects.edit',
    body,
    outcome: () => edited(world, project, body),
  }
}

export function setBilling(world: World, chance: Chance): Intent {
  const { id, project } = chooseProject(world, chance)
  const wanted: View = {
    billing_subscription_id: chance.pick([null, 'sub_1', 'sub_2', "'; --", 's'.repeat(255)]),
    billing_subscription_status: chance.pick(statuses),
    billing_product_id: chance.pick([null, 'prod_1', '\n']),
  }
  const source = chance.happens(0.2) && project ? project.view : wanted
  const body = Object.fromEntries(billingFields.map((name) => [name, source[name]]))
  return {
    ...intentOn(id, project),
    operation: 'projects.set-billing',
    body,
    outcome: () => edited(world, project, body),
  }
}

const intentOn = (id: number, project: Project | undefined) => ({
  params: { project_id: id },
  exists: () => project !== undefined,
  target: project ?? null,
})

function edited(world: World, project: Project | undefined, body: View): Outcome | string {
  if (!project) return 'not_found'
  const named = namedIn(body)
  if (!named) return 'validation_failed'
  const before = project.view
  const wanted: View = { ...body, ...named }
  const changes = Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => !isSame(before[name], value)),
  )
  const fault = changeFault(world, changes)
  if (fault) return fault
  const lock = lockOutcome(project, wanted['is_locked'])
  const isChanged = Object.keys(changes).length > 0
  const view = isChanged ? { ...before, ...changes, updated_at: timeFrom(before['updated_at']) } : before
  const transfer = 'user_id' in changes ? transferOf(world, project, changes['user_id'], view) : undefined
  return {
    change: isChanged
      ? { type: 'project', before: configOf(before), after: configOf({ ...before, ...changes }) }
      : lock?.change
        ? { type: 'intervention', ...lock.change }
        : null,
    needsReason: lock?.change !== undefined || Object.keys(changes).some((name) => reasoned.includes(name)),
    limit: transfer?.limit ?? null,
    response: projectOnWire(world, { view }),
    version: project.version + (isChanged ? 1 : 0),
    commit({ plan, ...rest }: View) {
      if (isChanged) project.version++
      project.view = rest
      transfer?.commit()
      const intervention = lock?.commit()
      return { acts: project.acts, id: isChanged || !intervention ? project.id : intervention }
    },
  }
}

/** Locking a project that is locked until a given time starts a second lock. */
function lockOutcome(project: Project, isLocked: unknown): Imposed | undefined {
  if (isLocked === undefined) return undefined
  return isLocked === true ? impose(project, 'lock') : lift(project, 'lock')
}

function changeFault(world: World, changes: View): string | undefined {
  for (const name of ['plan_id', 'admin_plan_id']) {
    const id = changes[name] ?? null
    const fault = id === null ? undefined : planFault(world, id)
    if (fault) return fault
  }
  return 'user_id' in changes && refusesUser(world, changes['user_id']) ? 'validation_failed' : undefined
}

/** The new owner is an existing member, an invited one or a new one. The previous owner becomes an admin. */
function transferOf(world: World, project: Project, userId: unknown, view: View) {
  const user = findById(world.users, userId) as GlobalResource
  const members = ownerAfter(project, user)
  const { max_users: value } = planInForce(world, { view }).view as { max_users: number }
  const isMore = members.length > project.resources.members.length
  const limit: LimitException | null =
    isMore && members.length > value ? { limit: 'max_users', value, count: members.length } : null
  return {
    limit,
    commit: () => {
      const before = project.resources.members
      // In place, because requests that may be repeated later refer to these objects.
      project.resources.members = ownerAfter(project, user).map((after, n) =>
        Object.assign(before[n] ?? after, after),
      )
    },
  }
}
