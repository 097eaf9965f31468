import Type from 'typebox'
import { interventionView, listInForce } from '../../core/control/interventions/interventions.ts'
import { Intervention } from '../../core/control/interventions/wire.ts'
import { seekPlatformSuppression } from '../../core/control/platform-suppressions/platform-suppressions.ts'
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
    const { interventions, suppression } = await db.read(async (tx) => {
      await requireProject(tx, project_id)
      return {
        interventions: await listInForce(tx, project_id),
        suppression: await seekPlatformSuppression(tx, query.to),
      }
    })
    const explained = await mailDbFor(project_id).read((tx) =>
      explainSending(tx, project_id, query, sendingRules, suppression?.reason),
    )
    return { answer: { ...explained, interventions: interventions.map(interventionView) } }
  },
})
