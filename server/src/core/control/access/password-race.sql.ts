import { type RawBuilder, sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

export interface PasswordRow {
  user_id: number
  password: string | null
}

const selectByEmail = (email: string): RawBuilder<PasswordRow> => sql<PasswordRow>`
  select accounts.user_id, accounts.password
    from control.accounts as accounts join control.users as users on users.id = accounts.user_id
   where users.email = ${email} and accounts.provider_id = 'credential'`

/** The password is null if the user has none. Undefined if there is no user. */
export async function findPassword(tx: ReadTx, email: string): Promise<PasswordRow | undefined> {
  const { rows } = await sql<PasswordRow>`
    select users.id as user_id, accounts.password
      from control.users as users
      left join control.accounts as accounts
        on accounts.user_id = users.id and accounts.provider_id = 'credential'
     where users.email = ${email}`.execute(tx)
  return rows[0]
}

/** Waits for a concurrent password change to commit. */
export async function lockPassword(tx: Tx, email: string): Promise<PasswordRow | undefined> {
  const { rows } = await sql<PasswordRow>`${selectByEmail(email)} for share of accounts`.execute(tx)
  return rows[0]
}

export async function deleteSessionByToken(tx: Tx, token: string): Promise<void> {
  await tx.deleteFrom('control.sessions').where('token', '=', token).execute()
}

/** False if the session no longer exists. Otherwise locks it against deletion until the transaction ends. */
export async function lockSession(tx: Tx, sessionId: number): Promise<boolean> {
  const { rows } = await sql`
    select from control.sessions where id = ${sessionId} for key share`.execute(tx)
  return rows.length > 0
}
