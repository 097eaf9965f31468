import type { Tx } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { deleteEnded } from './access.sql.ts'

/** Sessions that ended a day ago, challenges and used codes, counters of attempts: one step, bounded. */
export const purgeSignIns = (tx: Tx): Promise<number> => deleteEnded(tx, purgedAtOnce)
