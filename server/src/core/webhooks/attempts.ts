import type { ReadTx } from '../../platform/db/db.ts'
import { type AttemptRow, type AttemptSearch, listByEndpoint } from './attempts.sql.ts'

export type { AttemptRow }

/** What was tried, newest first. `next` is where the next page goes on, which may be where this one stopped looking. */
export const searchAttempts = (
  tx: ReadTx,
  projectId: number,
  endpointId: number,
  search: AttemptSearch,
): Promise<{ rows: AttemptRow[]; next: string | null }> => listByEndpoint(tx, projectId, endpointId, search)
