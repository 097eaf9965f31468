import Type from 'typebox'
import { listPublicInForce } from '../../core/control/interventions/notices.ts'
import { PublicIntervention } from '../../core/control/interventions/wire.ts'
import {
  explainMessage,
  MessageExplanation,
  type MessageState,
  readMessageState,
} from '../../core/mail/messages/explain-message.ts'
import { MessageParams } from '../../core/mail/messages/wire.ts'
import { customerQuery } from '../operation.ts'

export const explainMessageQuery = customerQuery({
  id: 'messages.explain',
  path: '/projects/:project_id/messages/:id/explain',
  pathOfKey: '/messages/:id/explain',
  summary: 'Explain what a message waits for',
  description:
    'Returns what each recipient waits for, since when, and when it is handed over next, with the interventions that cause it.',
  params: MessageParams,
  query: {},
  answer: Type.Object(
    { ...MessageExplanation.properties, interventions: Type.Array(PublicIntervention) },
    { title: 'MessageExplanationForCustomers', additionalProperties: false },
  ),
  preload: (mail, { projectId, params: { id } }): Promise<MessageState | undefined> =>
    readMessageState(mail, projectId, id),
  async run({ tx, projectId, params: { id }, preloaded }) {
    const inForce = await listPublicInForce(tx, projectId)
    return { answer: explainMessage({ projectId, id }, preloaded, inForce) }
  },
})
