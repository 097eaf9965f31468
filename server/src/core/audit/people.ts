import type { Tx } from '../../platform/db/db.ts'
import { deletePerson } from './people.sql.ts'

/**
 * Forgets who somebody was: the personal data kept under the address, as actor and as the one acted upon. The
 * audit rows stay, with the user's id and the digests, which tell nothing without their salt. Returns how
 * many times the person was in it.
 */
export const erasePerson = (tx: Tx, email: string): Promise<number> => deletePerson(tx, email.toLowerCase())
