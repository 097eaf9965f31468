import Type from 'typebox'
import { interventionView, listInForce } from '../../core/control/interventions/interventions.ts'
import { Intervention } from '../../core/control/interventions/wire.ts'
import { requireProject } from '../../core/control/projects/projects.ts'
import { ExplainedMessage, Explanation, explainSending } from '../../core/mail/messages/explain.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const explainSendingQuery = adminQuery({
  id: 'sending.explain',
  path: '/admin/projects/:project_id/explain',
  summary: 'Explain whether a project can send',
  description:
    'Returns the result of every check that a message from one address to another would have to pass now, with what would change a failed one, and the interventions in force with their reasons. Nothing is sent or stored.',
  params: ProjectParams,
  query: ExplainedMessage,
  answer: Type.Object(
    { ...Explanation.properties, interventions: Type.Array(Intervention) },
    { title: 'ExplanationForAdministrators', additionalProperties: false },
  ),
  async run({ db, mailDbFor, sendingRules, params: { project_id }, query }) {
    const interventions = await db.read(async (tx) => {
      await requireProject(tx, project_id)
      return listInForce(tx, project_id)
    })
    const explained = await mailDbFor(project_id).read((tx) =>
      explainSending(tx, project_id, query, sendingRules),
    )
    return { answer: { ...explained, interventions: interventions.map(interventionView) } }
  },
})
