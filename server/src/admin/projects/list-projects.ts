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
import { NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'
import { filterOf, maxScore, projectFilters } from './filters.ts'

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
    ...projectFilters,
  },
  answer: searchOf(Project),
  async run({ db, query }) {
    const page = sortedPageOf(query, sorts)
    const wanted = { ...filterOf(query), ...page }
    const found = await db.read((tx) => searchProjects(tx, wanted))
    return { answer: sortedScanPage(found, projectView, page, sorts) }
  },
})
