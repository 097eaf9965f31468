import type { Static } from 'typebox'
import type { OneStatement, ReadTx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { counted } from '../../shared/counts.ts'
import { type AttentionRow, countByCause, listNewest, maintain } from './attention.sql.ts'
import { type Attention, maxCounted, maxNewest } from './wire.ts'

/** Projects that need attention. The database keeps them by triggers (server/migrations/000002_control.sql). */
export async function readAttention(tx: ReadTx): Promise<Static<typeof Attention>> {
  const counts = await countByCause(tx, maxCounted + 1)
  const newest = await listNewest(tx, maxNewest)
  return {
    counts: Object.fromEntries(counts.map(({ cause, projects }) => [cause, projects])) as never,
    newest: newest.map(entryView),
  }
}

const entryView = (row: AttentionRow): Static<typeof Attention>['newest'][number] => ({
  project_id: row.project_id,
  project_name: row.project_name,
  cause: row.cause,
  since: row.since.toISOString(),
  resource_id: row.resource_id,
  detail: row.usage ? usageText(row.usage) : row.name,
})

/** "12 of 10 members, 3 of 2 domains". */
const usageText = ({ members, max_members, domains, max_domains }: NonNullable<AttentionRow['usage']>) =>
  [
    ...(members > max_members ? [`${members} of ${counted(max_members, 'member')}`] : []),
    ...(domains > max_domains ? [`${domains} of ${counted(max_domains, 'domain')}`] : []),
  ].join(', ')

/**
 * A step of `purge`. Deletes the rows of old firings, and compares the projects of a plan with its limits after these were
 * changed.
 */
export const maintainAttention = (tx: OneStatement): Promise<number> => maintain(tx, purgedAtOnce)
