import { editProject, lockProject, projectChange, projectView } from '../../core/control/projects/projects.ts'
import { BillingFields, Project } from '../../core/control/projects/wire.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'

export const setBillingOperation = adminOperation({
  id: 'projects.set-billing',
  kind: 'edit',
  method: 'PUT',
  path: '/admin/projects/:project_id/billing',
  summary: "Set a project's billing state",
  description:
    'Replaces the three fields that the billing system owns. All three are required; send null for those that do not apply. A subscription status override, if set, still applies.',
  params: ProjectParams,
  body: BillingFields,
  isCompleteConfiguration: true,
  example: {
    billing_subscription_id: 'sub_9x2',
    billing_subscription_status: 'active',
    billing_product_id: 'prod_business',
  },
  answer: Project,
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, actorId, target: before, body }) {
    const decision = { actorId, reason: null }
    const { row: after, changed } = await editProject(tx, before, { change: body, decision })
    const status = after.billing_subscription_status
    const isStopped = status === 'canceled' || status === 'paused'
    return {
      audit:
        changed.length === 0
          ? unchanged
          : {
              projectId: after.id,
              change: projectChange(before, after),
            },
      effects:
        after.admin_subscription_status === null
          ? [
              `The current subscription status is ${status === null ? 'none: the project is not billed and can send' : `"${status}"`}.`,
            ]
          : [`The override "${after.admin_subscription_status}" still applies.`],
      warnings:
        isStopped && after.admin_subscription_status === null
          ? [`With the subscription status "${status}", the project cannot send.`]
          : [],
      answer: projectView(after),
      views: { before: projectView(before), after: projectView(after) },
      version: after.version,
    }
  },
})
