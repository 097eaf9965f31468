import { attemptFilter, DeliveryAttempt } from '../../core/control/endpoints/wire.ts'
import { listEndpointAttempts } from '../../core/mail/webhooks/attempts.ts'
import { PageQuery, searchOf } from '../../core/shared/pages.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listAttemptsQuery = adminQuery({
  id: 'endpoints.attempts',
  path: '/admin/projects/:project_id/endpoints/:id/attempts',
  summary: "List an endpoint's delivery attempts",
  description: "Delivery attempts, newest first, with the endpoint's responses.",
  params: ProjectItemParams,
  query: { ...PageQuery, ...attemptFilter },
  answer: searchOf(DeliveryAttempt),
  run: async ({ mailDbFor, params: { project_id, id }, query }) => ({
    answer: await mailDbFor(project_id).read((tx) => listEndpointAttempts(tx, project_id, id, query)),
  }),
})
