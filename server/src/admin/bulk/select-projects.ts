import { maxBulkItems } from '../../core/control/bulk/wire.ts'
import { searchProjects } from '../../core/control/projects/search.ts'
import type { ScanPosition } from '../../core/shared/bounded-scan.ts'
import type { Db } from '../../platform/db/db.ts'
import { PosternError } from '../../platform/errors.ts'
import { filterOf, type ProjectFilter } from '../projects/filters.ts'

export type Selection = { ids: readonly number[] } | { filter: ProjectFilter }

const pageSize = 1_000

/**
 * The ids of the selected projects, in order. A filter is read page by page, each in a short transaction of its own: a project
 * that changes meanwhile is selected as it was when its page was read. Ids that do not exist are kept, and refused later.
 */
export async function selectProjects(db: Db, selection: Selection): Promise<number[]> {
  const ids =
    'ids' in selection ? selection.ids.toSorted((a, b) => a - b) : await matching(db, selection.filter)
  if (ids.length > 0) return ids
  throw new PosternError('validation_failed', 'No project matches the filter.')
}

async function matching(db: Db, filter: ProjectFilter): Promise<number[]> {
  const ids: number[] = []
  let after: ScanPosition | undefined
  for (;;) {
    const wanted = { ...filterOf(filter), sort: 'id' as const, after, limit: pageSize }
    const { rows, next } = await db.read((tx) => searchProjects(tx, wanted))
    ids.push(...rows.map(({ id }) => id))
    if (ids.length > maxBulkItems) {
      throw new PosternError(
        'limit_exceeded',
        `More than ${maxBulkItems.toLocaleString('en')} projects match. Narrow the filter.`,
      )
    }
    if (next === null) return ids
    after = next
  }
}
