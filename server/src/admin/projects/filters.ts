import Type, { type Static } from 'typebox'
import type { ProjectSearch } from '../../core/control/projects/search.ts'
import { Id } from '../../platform/http/parameters.ts'

export const maxScore = 100
const Score = Type.Integer({ minimum: 0, maximum: maxScore })

/** The filters of the list of projects, and of bulk actions. */
export const projectFilters = {
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
}

const FilterSchema = Type.Object(projectFilters)
export type ProjectFilter = Static<typeof FilterSchema>

export const filterOf = ({
  q,
  locked,
  plan_id: planId,
  min_score: minScore,
  max_score: maxScore,
  over_limit: overLimit,
}: ProjectFilter): Omit<ProjectSearch, 'sort' | 'after' | 'limit'> => ({
  ...{ q, locked, planId, minScore, maxScore, overLimit },
})
