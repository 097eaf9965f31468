import { sql } from 'kysely'
import type { OneStatement, Tx } from '../../../platform/db/db.ts'

/** A request, and the mail to the new address. Replaces the user's earlier request. */
export async function insertChange(
  tx: Tx,
  user: { id: number; email: string },
  email: string,
  hours: number,
): Promise<void> {
  await sql`
    delete from control.email_changes where user_id = ${user.id} and confirmed_at is null`.execute(tx)
  await sql`
    with requested as (
      insert into control.email_changes (user_id, old_email, new_email, expires_at)
      values (${user.id}, ${user.email}, ${email}, postern.now() + make_interval(hours => ${hours}))
      returning id, expires_at
    )
    select control.add_system_mail('email_change', id, null, expires_at) from requested`.execute(tx)
}

export interface AppliedEmailChange {
  id: number
  user_id: number
  old_email: string
  new_email: string
  expires_at: Date
  /** Another account has the address, and nothing was changed. */
  is_taken: boolean
}

/** Undefined if the token is invalid, was used or has expired, or the account is disabled. */
export async function confirmChange(tx: Tx, hash: Buffer): Promise<AppliedEmailChange | undefined> {
  const { rows } = await sql<AppliedEmailChange>`select * from control.confirm_email_change(${hash})`.execute(
    tx,
  )
  return rows[0]
}

export async function undoChange(tx: Tx, hash: Buffer): Promise<AppliedEmailChange | undefined> {
  const { rows } = await sql<AppliedEmailChange>`select * from control.undo_email_change(${hash})`.execute(tx)
  return rows[0]
}

/** The password, and passkeys and logins at issuers that were added since the day before the change was requested. */
export async function deleteNewCredentials(tx: Tx, { id, user_id }: AppliedEmailChange): Promise<void> {
  await sql`
    update control.accounts set password = null, updated_at = postern.now()
     where user_id = ${user_id} and provider_id = 'credential'`.execute(tx)
  for (const table of ['control.passkeys', 'control.external_logins'] as const) {
    await sql`
      delete from ${sql.table(table)} as added using control.email_changes as change
       where change.id = ${id} and added.user_id = ${user_id}
         and added.created_at > change.created_at - interval '1 day'`.execute(tx)
  }
}

export async function deleteChanges(tx: Tx, userId: number): Promise<void> {
  await tx.deleteFrom('control.email_changes').where('user_id', '=', userId).execute()
}

export async function findRequested(
  tx: Tx,
  id: number,
): Promise<{ new_email: string; expires_at: Date; has_account: boolean } | undefined> {
  const { rows } = await sql<{ new_email: string; expires_at: Date; has_account: boolean }>`
    select new_email, expires_at, exists (select from control.users where email = new_email) as has_account
      from control.email_changes
     where id = ${id} and confirmed_at is null and expires_at > postern.now()`.execute(tx)
  return rows[0]
}

export async function findConfirmed(
  tx: Tx,
  id: number,
): Promise<{ old_email: string; expires_at: Date } | undefined> {
  const { rows } = await sql<{ old_email: string; expires_at: Date }>`
    select old_email, expires_at from control.email_changes
     where id = ${id} and confirmed_at is not null and expires_at > postern.now()`.execute(tx)
  return rows[0]
}

export async function storeHash(tx: Tx, id: number, hash: Buffer): Promise<void> {
  await tx.updateTable('control.email_changes').set({ token_hash: hash }).where('id', '=', id).execute()
}

export async function storeUndoHash(tx: Tx, id: number, hash: Buffer): Promise<void> {
  await tx.updateTable('control.email_changes').set({ undo_hash: hash }).where('id', '=', id).execute()
}

export async function deleteExpired(tx: OneStatement, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.email_changes where id in (
      select id from control.email_changes where expires_at < postern.now() limit ${limit})`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
