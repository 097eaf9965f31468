/**
 * Lookups: who searched the mail of all projects, and for what. An administrator who only reads leaves no audit row, so these
 * reads are recorded here. One row per request, not chained, deleted after 90 days. The rate limit per user bounds their
 * number.
 */
import type { Db, OneStatement, ReadTx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { deleteOldLookups, insertLookup, type Lookup, type LookupRow, selectLookups } from './lookups.sql.ts'

const keptDays = 90
const maxQuestionCharacters = 500
const maxProjects = 50

/** Called before the answer is sent: without a row there is no answer. */
export const recordLookup = (db: Db, lookup: Lookup): Promise<void> =>
  db.transaction((tx) =>
    insertLookup(tx, {
      ...lookup,
      question: shortened(lookup.question),
      projectIds: [...new Set(lookup.projectIds)].slice(0, maxProjects),
    }),
  )

/**
 * PostgreSQL counts code points. The text ends after one of its parts, because erasure finds an address only if all of it is
 * there.
 */
function shortened(question: string): string {
  const characters = [...question]
  if (characters.length <= maxQuestionCharacters) return question
  const start = characters.slice(0, maxQuestionCharacters - 1).join('')
  return `${start.slice(0, Math.max(0, start.lastIndexOf(', ')))}…`
}

/** Newest first. */
export const listLookups = (
  tx: ReadTx,
  query: { actorId?: number | undefined; limit: number; beforeId: number },
): Promise<LookupRow[]> => selectLookups(tx, query)

export const lookupView = (row: LookupRow) => ({
  id: row.id,
  actor_id: row.actor_id,
  operation: row.operation,
  question: row.question,
  project_ids: row.project_ids,
  request_id: row.request_id,
  created_at: row.created_at.toISOString(),
})

/** Returns the number of deleted rows. */
export const purgeLookups = (tx: OneStatement): Promise<number> =>
  deleteOldLookups(tx, keptDays, purgedAtOnce)
