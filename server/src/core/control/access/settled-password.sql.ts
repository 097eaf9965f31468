import { type RawBuilder, sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

export interface PasswordRow {
  user_id: number
  password: string | null
}

const ofAddress = (email: string): RawBuilder<PasswordRow> => sql<PasswordRow>`
  select accounts.user_id, accounts.password
    from control.accounts as accounts join control.users as users on users.id = accounts.user_id
   where users.email = ${email} and accounts.provider_id = 'credential'`

export async function findPassword(tx: ReadTx, email: string): Promise<PasswordRow | undefined> {
  return (await ofAddress(email).execute(tx)).rows[0]
}

/** Waits for whoever is about to change it. */
export async function lockPassword(tx: Tx, email: string): Promise<PasswordRow | undefined> {
  const { rows } = await sql<PasswordRow>`${ofAddress(email)} for share of accounts`.execute(tx)
  return rows[0]
}

export async function deleteSessionWith(tx: Tx, token: string): Promise<void> {
  await tx.deleteFrom('control.sessions').where('token', '=', token).execute()
}

/** Whether it has not been ended. Whoever ends it now waits for this transaction. */
export async function keepSession(tx: Tx, sessionId: number): Promise<boolean> {
  const { rows } = await sql`
    select from control.sessions where id = ${sessionId} for key share`.execute(tx)
  return rows.length > 0
}
