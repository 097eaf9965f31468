import type { OneStatement } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { deleteEnded } from './access.sql.ts'

/** Deletes one batch of sessions that expired a day ago, challenges, used codes and attempt counters. */
export const purgeSignIns = (tx: OneStatement): Promise<number> => deleteEnded(tx, purgedAtOnce)
