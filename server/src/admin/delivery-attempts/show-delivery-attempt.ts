import Type from 'typebox'
import { recordLookup } from '../../core/control/audit/lookups.ts'
import { AttemptParams, AttemptWithPayload } from '../../core/control/endpoints/wire.ts'
import { showAttempt } from '../../core/mail/webhooks/attempts.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

const id = 'delivery-attempts.show'

export const showDeliveryAttemptQuery = adminQuery({
  id,
  path: '/admin/projects/:project_id/delivery-attempts/:id',
  summary: 'Show a delivery attempt with its payload',
  description:
    'Returns one attempt to deliver an event to an endpoint: the payload that was sent, and the response. For `inbound.received`, `payload` is null, because it contains the inbound message. Each request is recorded in `audit.lookups`.',
  params: Type.Object(
    { ...ProjectParams.properties, ...AttemptParams.properties },
    { additionalProperties: false },
  ),
  query: {},
  answer: AttemptWithPayload,
  // HEAD would record a lookup too.
  hasHead: false,
  async run({ db, mailDbFor, actorId, requestId, params }) {
    const { project_id } = params
    const answer = await mailDbFor(project_id).read((tx) =>
      showAttempt(tx, project_id, params.id, { withInbound: false }),
    )
    const question = `delivery attempt ${answer.id}, endpoint ${answer.endpoint_id}`
    await recordLookup(db, { actorId, operation: id, question, projectIds: [project_id], requestId })
    return { answer }
  },
})
