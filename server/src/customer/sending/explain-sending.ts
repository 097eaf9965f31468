import Type, { type Static } from 'typebox'
import { listPublicInForce } from '../../core/control/interventions/notices.ts'
import { PublicIntervention } from '../../core/control/interventions/wire.ts'
import { ExplainedMessage, Explanation, explainSending } from '../../core/mail/messages/explain.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const explainSendingQuery = customerQuery({
  id: 'sending.explain',
  path: '/projects/:project_id/explain',
  pathOfKey: '/explain',
  summary: 'Explain whether the project can send',
  description:
    'Returns the result of every check that a message from one address to another would have to pass now, with what would change a failed one, and the interventions in force. Nothing is sent or stored.',
  params: NoParams,
  query: ExplainedMessage,
  answer: Type.Object(
    { ...Explanation.properties, interventions: Type.Array(PublicIntervention) },
    { title: 'ExplanationForCustomers', additionalProperties: false },
  ),
  preload: (mail, { projectId, deps, query }): Promise<Static<typeof Explanation>> =>
    explainSending(mail, projectId, query, deps.sendingRules),
  run: async ({ tx, projectId, preloaded }) => ({
    answer: { ...preloaded, interventions: await listPublicInForce(tx, projectId) },
  }),
})
