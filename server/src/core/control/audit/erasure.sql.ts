import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'

/** Also deletes texts that contain the address. `email` is in lower case. */
export async function deletePerson(tx: Tx, email: string): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.audit_people where (audit_id, part) in (
      select audit_id, part from control.audit_people where lower(email) = ${email}
      union all
      select audit_id, part from control.audit_people
       where part in ('before.text', 'after.text') and strpos(lower(name), ${email}) > 0)`.execute(tx)
  return Number(numAffectedRows ?? 0n)
}

/** Removes the questions that contain the address. Who asked, and when, is kept. `email` is in lower case. */
export async function eraseFromLookups(tx: Tx, email: string): Promise<number> {
  const { numAffectedRows } = await sql`
    update control.lookups set question = 'erased' where strpos(lower(question), ${email}) > 0`.execute(tx)
  return Number(numAffectedRows ?? 0n)
}
