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
  description:
    'Projects, newest first unless another order is asked for, narrowed by any of the parameters together.',
  params: NoParams,
  query: {
    ...sortedPageQuery(
      sorts,
      '`-id`, unless told otherwise, is newest first; `reputation_score` is worst first; `name` takes capital and small letters for the same and goes by code point. Equals stand in the order of their ids.',
    ),
    q: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description: 'Part of the name, in capital or small letters.',
      }),
    ),
    locked: Type.Optional(Type.Boolean({ description: 'Only locked ones, or only the others.' })),
    plan_id: Type.Optional({ ...Id, description: 'The plan in force.' }),
    min_score: Type.Optional({ ...Score, description: 'The lowest reputation score.' }),
    max_score: Type.Optional({ ...Score, description: 'The highest reputation score.' }),
    over_limit: Type.Optional(
      Type.Boolean({
        description:
          'Only those with more members or domains than the plan in force allows, or only the others.',
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
