import Type from 'typebox'
import { interventionView, listInForce } from '../../core/control/interventions/interventions.ts'
import { Intervention } from '../../core/control/interventions/wire.ts'
import {
  explainMessage,
  MessageExplanation,
  readMessageState,
} from '../../core/mail/messages/explain-message.ts'
import { adminQuery } from '../operation.ts'
import { ProjectMessageParams } from './parameters.ts'

export const explainMessageQuery = adminQuery({
  id: 'messages.explain',
  path: '/admin/projects/:project_id/messages/:id/explain',
  summary: 'Explain what a message waits for',
  description:
    'What each recipient waits for, since when, and when it is handed over next, with the interventions that cause it and their reasons.',
  params: ProjectMessageParams,
  query: {},
  answer: Type.Object(
    { ...MessageExplanation.properties, interventions: Type.Array(Intervention) },
    { title: 'MessageExplanationForAdministrators', additionalProperties: false },
  ),
  async run({ db, mailDbFor, params: { project_id: projectId, id } }) {
    const explained = await mailDbFor(projectId).read((tx) => readMessageState(tx, projectId, id))
    const inForce = (await db.read((tx) => listInForce(tx, projectId))).map(interventionView)
    return { answer: explainMessage({ projectId, id }, explained, inForce) }
  },
})
