import Type from 'typebox'
import { interventionChange } from '../../core/control/interventions/interventions.ts'
import {
  countQueuedMail,
  editProject,
  lockProject,
  projectChange,
  projectView,
  type QueuedMail,
} from '../../core/control/projects/projects.ts'
import { Project, ProjectFields } from '../../core/control/projects/wire.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { limitWarnings } from '../limits.ts'
import { adminOperation, unchanged } from '../operation.ts'
import { projectEffects, projectWarnings } from './consequences.ts'
import { ownerBeyondLimit } from './owner-limit.ts'
import { roleChanges } from './role-changes.ts'

export const editProjectOperation = adminOperation({
  id: 'projects.edit',
  kind: 'edit',
  path: '/admin/projects/:project_id',
  summary: 'Edit a project',
  description:
    'Updates the fields provided in the request body. A `reason` is required when `is_locked`, `reputation_score`, `user_id`, `allow_service_mta`, `admin_plan_id` or `admin_subscription_status` changes. A `reputation_score` is stored as a permanent offset to the computed score. A new `user_id` transfers the project, and the previous owner becomes an admin.',
  params: ProjectParams,
  body: Type.Partial(Type.Object(ProjectFields)).properties,
  refusals: ['reason_required', 'plan_inactive'],
  example: { is_locked: true, reason: 'Card testing through the sign-up form' },
  answer: Project,
  preload: (mail, { project_id }): Promise<QueuedMail | undefined> => countQueuedMail(mail, project_id),
  preloadFor: 'preview',
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, caps, target: before, preloaded: mail, body, reason }) {
    const { row: after, changed, members, interventions } = await editProject(tx, before, body, reason)
    const limitException = await ownerBeyondLimit(tx, caps, after, members)
    const [change, ...related] = [
      ...(after === before ? [] : [projectChange(before, after)]),
      ...roleChanges(members),
      ...interventions.map(interventionChange),
    ]
    return {
      // Locking a project that is locked until a given time changes its interventions, but not the project.
      audit: change ? { projectId: after.id, change, related, limitException } : unchanged,
      changedFields: changed,
      effects: () => projectEffects(tx, before, after, mail),
      warnings: async () => [...(await projectWarnings(tx, before, after)), ...limitWarnings(limitException)],
      answer: projectView(after),
      ...(after !== before && { views: { before: projectView(before), after: projectView(after) } }),
      version: after.version,
    }
  },
})
