import Type from 'typebox'
import { projectView } from '../../core/control/projects/projects.ts'
import { searchProjects } from '../../core/control/projects/search.ts'
import { Project, type ProjectSort } from '../../core/control/projects/wire.ts'
import {
  integerKey,
  type Sorts,
  searchOf,
  sortedPageOf,
  sortedPageQuery,
  sortedScanPage,
  textKey,
} from '../../core/shared/pages.ts'
import { Id, NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

const maxScore = 100
const Score = Type.Integer({ minimum: 0, maximum: maxScore })

const sorts: Sorts<ProjectSort> = {
  '-id': null,
  id: null,
  name: textKey,
  '-name': textKey,
  reputation_score: integerKey(maxScore),
  '-reputation_score': integerKey(maxScore),
}

export const listProjectsQuery = adminQuery({
  id: 'projects.list',
  path: '/admin/projects',
  summary: 'List projects',
  description: 'Projects, newest first unless `sort` specifies another order. Filters can be combined.',
  params: NoParams,
  query: {
    ...sortedPageQuery(
      sorts,
      'Default: `-id`, newest first. `reputation_score` sorts lowest first. `name` sorts case-insensitively by code point. Ties are sorted by id.',
    ),
    q: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description: 'Part of the name, case-insensitive.',
      }),
    ),
    locked: Type.Optional(
      Type.Boolean({ description: 'True: only locked projects. False: only projects that are not locked.' }),
    ),
    plan_id: Type.Optional({ ...Id, description: 'The current plan.' }),
    min_score: Type.Optional({ ...Score, description: 'The minimum reputation score.' }),
    max_score: Type.Optional({ ...Score, description: 'The maximum reputation score.' }),
    over_limit: Type.Optional(
      Type.Boolean({
        description:
          'True: only projects with more members or domains than the current plan allows. False: only projects within these limits.',
      }),
    ),
  },
  answer: searchOf(Project),
  async run({ db, query }) {
    const page = sortedPageOf(query, sorts)
    const {
      q,
      locked,
      plan_id: planId,
      min_score: minScore,
      max_score: maxScore,
      over_limit: overLimit,
    } = query
    const wanted = { q, locked, planId, minScore, maxScore, overLimit, ...page }
    const found = await db.read((tx) => searchProjects(tx, wanted))
    return { answer: sortedScanPage(found, projectView, page, sorts) }
  },
})
