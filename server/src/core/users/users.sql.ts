import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../platform/db/db.ts'

const columns = [
  'id',
  'email',
  'name',
  'role',
  'is_active',
  'two_factor_enabled',
  'token_generation',
  'version',
  'created_at',
  'updated_at',
] as const

export interface UserRow {
  id: number
  email: string
  name: string
  role: string
  is_active: boolean
  two_factor_enabled: boolean
  token_generation: number
  version: number
  created_at: Date
  updated_at: Date
}

export const find = (tx: ReadTx, id: number): Promise<UserRow | undefined> =>
  tx.selectFrom('control.users').select(columns).where('id', '=', id).executeTakeFirst()

export const lock = (tx: Tx, id: number): Promise<UserRow | undefined> =>
  tx.selectFrom('control.users').select(columns).where('id', '=', id).forNoKeyUpdate().executeTakeFirst()

/** Against being disabled while something is being given to them. */
export const share = (tx: Tx, id: number): Promise<UserRow | undefined> =>
  tx.selectFrom('control.users').select(columns).where('id', '=', id).forShare().executeTakeFirst()

/**
 * In the order of their ids, always before a single user is locked: two administrators who take each other's role
 * away at once would otherwise both find one left.
 */
export async function lockAdministrators(tx: Tx): Promise<number[]> {
  const rows = await tx
    .selectFrom('control.users')
    .select('id')
    .where('role', '=', 'admin')
    .where('is_active', '=', true)
    .orderBy('id')
    .forNoKeyUpdate()
    .execute()
  return rows.map(({ id }) => id)
}

export async function update(
  tx: Tx,
  id: number,
  { role, is_active, ends }: { role: string; is_active: boolean; ends: boolean },
): Promise<UserRow> {
  return tx
    .updateTable('control.users')
    .set((eb) => ({
      role,
      is_active,
      version: eb('version', '+', 1),
      updated_at: sql<Date>`postern.now()`,
      ...(ends
        ? { token_generation: eb('token_generation', '+', 1), token_generation_at: sql<Date>`postern.now()` }
        : {}),
    }))
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow()
}

export async function countSessions(tx: ReadTx, userId: number): Promise<number> {
  const { living } = await tx
    .selectFrom('control.sessions')
    .select((eb) => eb.fn.countAll<number>().as('living'))
    .where('user_id', '=', userId)
    .where('expires_at', '>', sql<Date>`postern.now()`)
    .executeTakeFirstOrThrow()
  return living
}

export async function deleteSessions(tx: Tx, userId: number): Promise<void> {
  await tx.deleteFrom('control.sessions').where('user_id', '=', userId).execute()
}

export function list(
  tx: ReadTx,
  { q, limit, beforeId }: { q?: string | undefined; limit: number; beforeId: number },
): Promise<UserRow[]> {
  let query = tx
    .selectFrom('control.users')
    .select(columns)
    .where('id', '<', beforeId)
    .orderBy('id', 'desc')
    .limit(limit)
  if (q !== undefined) {
    const pattern = `%${q.replace(/[\\%_]/g, '\\$&')}%`
    query = query.where((eb) => eb.or([eb('email', 'ilike', pattern), eb('name', 'ilike', pattern)]))
  }
  return query.execute()
}
