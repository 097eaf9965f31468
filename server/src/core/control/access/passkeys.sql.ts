import type { ReadTx, Tx } from '../../../platform/db/db.ts'

export function listPasskeys(tx: ReadTx, userId: number) {
  return tx
    .selectFrom('control.passkeys')
    .select(['id', 'name', 'created_at'])
    .where('user_id', '=', userId)
    .orderBy('id', 'desc')
    .execute()
}

export async function countPasskeys(tx: ReadTx, userId: number): Promise<number> {
  const { count } = await tx
    .selectFrom('control.passkeys')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow()
  return count
}

export async function findPasskeyUser(tx: ReadTx, credentialId: string): Promise<number | undefined> {
  const row = await tx
    .selectFrom('control.passkeys')
    .select('user_id')
    .where('credential_id', '=', credentialId)
    .executeTakeFirst()
  return row?.user_id
}

export async function renamePasskey(tx: Tx, userId: number, id: number, name: string): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('control.passkeys')
    .set({ name })
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export async function deletePasskey(tx: Tx, userId: number, id: number): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('control.passkeys')
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .executeTakeFirst()
  return numDeletedRows === 1n
}
