import Type from 'typebox'
import {
  editProject,
  lockProject,
  type ProjectRow,
  projectRecord,
  projectView,
} from '../../core/projects/projects.ts'
import { Project, ProjectFields } from '../../core/projects/wire.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { ProjectParams } from '../parameters.ts'
import { ownerBeyondLimit } from './owner-limit.ts'
import { roleChanges } from './role-changes.ts'

/** Locks, scores and overrides: a change of one of these is never without a reason. */
const reasonedFields = [
  'is_locked',
  'reputation_score',
  'admin_plan_id',
  'admin_subscription_status',
  'allow_service_mta',
  'user_id',
]

export const editProjectOperation = adminOperation({
  id: 'projects.edit',
  kind: 'edit',
  path: '/admin/projects/:project_id',
  summary: 'Edit a project',
  description:
    'Changes the fields that are given. A `reason` is required when `is_locked`, `reputation_score`, `user_id`, `allow_service_mta`, `admin_plan_id` or `admin_subscription_status` changes. A `reputation_score` is kept as a lasting difference to the computed one. A new `user_id` transfers the project: the old owner stays as an admin.',
  params: ProjectParams,
  body: Type.Partial(Type.Object(ProjectFields)).properties,
  refusals: ['reason_required', 'plan_inactive'],
  example: { is_locked: true, reason: 'Card testing seen in the sign-up form' },
  answer: Project,
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, target: before, body }) {
    const { row: after, changed, members } = await editProject(tx, before, body)
    const limitException = await ownerBeyondLimit(tx, after, members)
    return {
      audit:
        changed.length === 0
          ? unchanged
          : {
              projectId: after.id,
              change: {
                resource: 'project',
                id: after.id,
                before: projectRecord(before),
                after: projectRecord(after),
              },
              related: roleChanges(members),
              limitException,
            },
      reasonNeededFor: changed.filter((field) => reasonedFields.includes(field)),
      effects: effectsOf(before, after),
      warnings: [
        ...warningsOf(before, after),
        ...(limitException ? ['The new owner is a member more than the plan in force allows.'] : []),
      ],
      answer: projectView(after),
      version: after.version,
    }
  },
})

function effectsOf(before: ProjectRow, after: ProjectRow): string[] {
  return [
    ...(!before.is_locked && after.is_locked
      ? ['The project accepts no new mail, and what is queued is held until it is unlocked.']
      : []),
    ...(before.is_locked && !after.is_locked ? ['The project sends again, and its held mail goes on.'] : []),
    ...(before.plan.id === after.plan.id
      ? []
      : [`The plan in force changes from "${before.plan.name}" to "${after.plan.name}".`]),
    ...(before.user_id === after.user_id
      ? []
      : [`User ${after.user_id} becomes the owner; user ${before.user_id} stays as an admin.`]),
    ...(before.reputation_score === after.reputation_score
      ? []
      : [
          `The score stays ${after.reputation_score - after.computed_score} away from the computed one, which is ${after.computed_score}.`,
        ]),
  ]
}

function warningsOf(before: ProjectRow, after: ProjectRow): string[] {
  const status = after.admin_subscription_status ?? after.billing_subscription_status
  return [
    ...(before.allow_service_mta && !after.allow_service_mta
      ? ["Its domains on the operator's own MTAs can send no new mail."]
      : []),
    ...(before.admin_subscription_status !== after.admin_subscription_status &&
    (status === 'canceled' || status === 'paused')
      ? [`With the status "${status}" in force the project cannot send.`]
      : []),
    ...(before.plan_id !== after.plan_id && after.admin_plan_id !== null
      ? [`The administrator's plan ${after.admin_plan_id} stays in force over the billed one.`]
      : []),
  ]
}
