import { AttemptParams, AttemptWithPayload } from '../../core/control/endpoints/wire.ts'
import { showAttempt } from '../../core/mail/webhooks/attempts.ts'
import { customerQuery } from '../operation.ts'

export const showDeliveryAttemptQuery = customerQuery({
  id: 'delivery-attempts.show',
  path: '/projects/:project_id/delivery-attempts/:id',
  summary: 'Show a delivery attempt with its payload',
  description:
    'Returns one attempt to deliver an event to an endpoint: the payload that was sent, and the response. The signature is not stored, because it differs between attempts. A payload can contain an inbound message, so this requires the permission to configure endpoints.',
  params: AttemptParams,
  query: {},
  runsIn: 'mail',
  answer: AttemptWithPayload,
  run: async ({ tx, projectId, params }) => ({
    answer: await showAttempt(tx, projectId, params.id, { withInbound: true }),
  }),
})
