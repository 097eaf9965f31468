import { attemptFilter, DeliveryAttempt } from '../../core/control/endpoints/wire.ts'
import { listEndpointAttempts } from '../../core/mail/webhooks/attempts.ts'
import { PageQuery, searchOf } from '../../core/shared/pages.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const listAttemptsQuery = customerQuery({
  id: 'endpoints.attempts',
  path: '/projects/:project_id/endpoints/:id/attempts',
  summary: "List an endpoint's delivery attempts",
  description: "Returns delivery attempts, newest first, with the endpoint's responses.",
  params: ItemParams,
  query: { ...PageQuery, ...attemptFilter },
  runsIn: 'mail',
  answer: searchOf(DeliveryAttempt),
  run: async ({ tx, projectId, params, query }) => ({
    answer: await listEndpointAttempts(tx, projectId, params.id, query),
  }),
})
