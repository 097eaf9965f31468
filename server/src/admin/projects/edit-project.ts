import Type from 'typebox'
import { expiryOf, interventionChange } from '../../core/control/interventions/interventions.ts'
import {
  countQueuedMail,
  editProject,
  lockProject,
  projectChange,
  projectView,
  type QueuedMail,
} from '../../core/control/projects/projects.ts'
import { Project, type ProjectConfig, ProjectFields } from '../../core/control/projects/wire.ts'
import {
  nameAuditEntry,
  type ReversalChange,
  reversalChange,
} from '../../core/control/reversals/reversals.ts'
import { temporaryFields } from '../../core/control/reversals/wire.ts'
import { Timestamp } from '../../core/shared/wire.ts'
import type { Tx } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
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
    'Updates the fields provided in the request body. A `reason` is required when `is_locked`, `reputation_score`, `user_id`, `allow_service_mta`, `admin_plan_id` or `admin_subscription_status` changes. A `reputation_score` is stored as a permanent offset to the computed score. A new `user_id` transfers the project, and the previous owner becomes an admin. With `expires_at`, a lock ends at that time, and `reputation_score`, `allow_service_mta`, `admin_plan_id` and `admin_subscription_status` return to their previous values; sending such a field again without `expires_at` cancels this.',
  params: ProjectParams,
  body: {
    ...Type.Partial(Type.Object(ProjectFields)).properties,
    expires_at: Type.Optional({
      ...Timestamp,
      description: 'When a lock ends, and overrides return to their previous values.',
    }),
  },
  refusals: ['reason_required', 'plan_inactive', 'limit_exceeded'],
  example: { is_locked: true, reason: 'Card testing through the sign-up form' },
  answer: Project,
  preload: (mail, { project_id }): Promise<QueuedMail | undefined> => countQueuedMail(mail, project_id),
  preloadFor: 'preview',
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, caps, actorId, target: before, preloaded: mail, body, reason }) {
    const { expires_at, ...change } = body
    const expiresAt = expires_at === undefined ? null : await expiryOfOverride(tx, expires_at, change)
    const edited = await editProject(tx, before, { change, decision: { actorId, reason }, expiresAt })
    const { row: after, changed, members, reversals } = edited
    const limitException = await ownerBeyondLimit(tx, caps, after, members)
    const [main, ...related] = [
      ...(after === before ? [] : [projectChange(before, after)]),
      ...roleChanges(members),
      ...edited.interventions.map(interventionChange),
      ...reversals.map(reversalChange),
    ]
    return {
      // Locking a project that is locked until a given time changes its interventions, but not the project.
      audit: main ? { projectId: after.id, change: main, related, limitException } : unchanged,
      onAudited: (auditId) => nameAuditEntry(tx, after.id, reversals, auditId),
      changedFields: changed,
      effects: async () => [
        ...(await projectEffects(tx, before, after, { mail, isTemporary: expiresAt !== null })),
        ...edited.interventions.flatMap(({ before: prior, after: lock }) =>
          prior === null && lock.expires_at ? [`The lock ends at ${lock.expires_at.toISOString()}.`] : [],
        ),
        ...reversals.map(reversalEffect),
      ],
      warnings: async () => [...(await projectWarnings(tx, before, after)), ...limitWarnings(limitException)],
      answer: projectView(after),
      ...(after !== before && { views: { before: projectView(before), after: projectView(after) } }),
      version: after.version,
    }
  },
})

/** `expires_at` needs a lock or a temporary field; what it would mean for others is unclear. */
async function expiryOfOverride(
  tx: Tx,
  expiresAt: string,
  change: Partial<ProjectConfig>,
): Promise<Date | null> {
  const isTemporary = change.is_locked === true || temporaryFields.some((field) => field in change)
  if (change.is_locked === false || !isTemporary) {
    throw new PosternError(
      'validation_failed',
      `"expires_at" applies only to "is_locked": true and to ${temporaryFields.map((field) => `"${field}"`).join(', ')}. Send other changes separately.`,
    )
  }
  return expiryOf(tx, expiresAt)
}

function reversalEffect({ before, after }: ReversalChange): string {
  if (!after)
    return `The field ${before?.field} keeps its value: it will no longer be restored automatically.`
  const original = after.field === 'reputation_score' ? `an offset of ${after.original}` : after.original
  return `At ${after.expires_at.toISOString()}, ${after.field} returns to ${original ?? 'no value'}.`
}
