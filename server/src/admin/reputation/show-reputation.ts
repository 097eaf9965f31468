import { findProject } from '../../core/control/projects/projects.ts'
import { explainScore, findWeek, Reputation } from '../../core/control/reputation/explain.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showReputationQuery = adminQuery({
  id: 'reputation.show',
  path: '/admin/projects/:project_id/reputation',
  summary: "Explain a project's score",
  description:
    'The parts of the reputation score: the rates of bounces, complaints and failures in the last seven UTC days, the points that each takes off, and the offset set by administrators.',
  params: ProjectParams,
  query: {},
  answer: Reputation,
  async run({ db, mailDbFor, params: { project_id } }) {
    const project = await db.read((tx) => findProject(tx, project_id))
    const week = await mailDbFor(project_id).read((tx) => findWeek(tx, project_id))
    return { answer: explainScore(project, week) }
  },
})
