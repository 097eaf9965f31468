import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

export async function deletePerson(tx: Tx, email: string): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('control.audit_people')
    .where(sql`lower(email)`, '=', email)
    .executeTakeFirst()
  return Number(numDeletedRows)
}
