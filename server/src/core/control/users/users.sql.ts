import { type RawBuilder, sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import {
  allOf,
  boundedScan,
  containsPattern,
  type ScanPosition,
  type ScanResult,
  scanResultOf,
} from '../../shared/bounded-scan.ts'
import { countCap } from '../../shared/counts.ts'

const columns = [
  'id',
  'email',
  'name',
  'role',
  'rights',
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
  rights: string
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

/** Locks the user against being disabled until the transaction ends. */
export const share = (tx: Tx, id: number): Promise<UserRow | undefined> =>
  tx.selectFrom('control.users').select(columns).where('id', '=', id).forShare().executeTakeFirst()

export type Administrator = Pick<UserRow, 'id' | 'rights' | 'two_factor_enabled'>

/**
 * Locks in id order, and always before a single user is locked. Otherwise two administrators who demote each other at the
 * same time would each find that one administrator remains.
 */
export async function lockAdministrators(tx: Tx): Promise<Administrator[]> {
  return tx
    .selectFrom('control.users')
    .select(['id', 'rights', 'two_factor_enabled'])
    .where('role', '=', 'admin')
    .where('is_active', '=', true)
    .orderBy('id')
    .forNoKeyUpdate()
    .execute()
}

export async function update(
  tx: Tx,
  id: number,
  { role, rights, is_active, ends }: { role: string; rights: string; is_active: boolean; ends: boolean },
): Promise<UserRow> {
  return tx
    .updateTable('control.users')
    .set((eb) => ({
      role,
      rights,
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

export interface UserProjects {
  owned: number
  /** Does not include projects that the user owns. */
  joined: number
}

/** Each count is capped. */
export async function countProjects(tx: ReadTx, userId: number): Promise<UserProjects> {
  const { rows } = await sql<UserProjects>`
    select (select count(*) from (
              select from control.projects where user_id = ${userId} limit ${sql.lit(countCap + 1)}
            ) as counted) as owned,
           (select count(*) from (
              select from control.members
               where user_id = ${userId} and role <> 'owner' limit ${sql.lit(countCap + 1)}
            ) as counted) as joined`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the count returned no row')
  return row
}

export async function countSessions(tx: ReadTx, userId: number): Promise<number> {
  const { active } = await tx
    .selectFrom('control.sessions')
    .select((eb) => eb.fn.countAll<number>().as('active'))
    .where('user_id', '=', userId)
    .where('expires_at', '>', sql<Date>`postern.now()`)
    .executeTakeFirstOrThrow()
  return active
}

export async function deleteSessions(tx: Tx, userId: number): Promise<void> {
  await tx.deleteFrom('control.sessions').where('user_id', '=', userId).execute()
}

/** List filters. An absent filter matches every user. */
export interface UserSearch {
  /** Part of the address or name. */
  q?: string | undefined
  role?: string | undefined
  isActive?: boolean | undefined
  limit: number
  beforeId: number | undefined
}

const listColumns = sql.join(columns.map((column) => sql.ref(`users.${column}`)))

const matchesText = (q: string) =>
  sql<boolean>`(users.email like ${containsPattern(q)} or lower(users.name) like ${containsPattern(q)})`

const filters = ({ q, role, isActive }: UserSearch): RawBuilder<boolean>[] => [
  ...(role === undefined ? [] : [sql<boolean>`users.role = ${role}`]),
  ...(isActive === undefined ? [] : [sql<boolean>`users.is_active = ${isActive}`]),
  ...(q === undefined ? [] : [matchesText(q)]),
]

/** The part of the filter that one index range covers: administrators, inactive users, or all users. */
const indexRange = ({ role, isActive }: UserSearch): RawBuilder<boolean>[] => {
  if (role === 'admin') return [sql<boolean>`users.role = 'admin'`]
  return isActive === false ? [sql<boolean>`not users.is_active`] : []
}

const before = ({ beforeId }: UserSearch): RawBuilder<boolean>[] =>
  beforeId === undefined ? [] : [sql<boolean>`users.id < ${beforeId}`]

const toResult = ({ limit }: UserSearch, rows: UserRow[], stop: ScanPosition | null): ScanResult<UserRow> =>
  scanResultOf(rows, limit, ({ id }) => ({ key: null, id }), stop)

/** Scans up to `bound` users, newest first. */
export async function scan(tx: ReadTx, search: UserSearch, bound: number): Promise<ScanResult<UserRow>> {
  const parts = boundedScan({
    columns: listColumns,
    from: sql`control.users as users`,
    within: allOf([...indexRange(search), ...before(search)]),
    order: sql`users.id desc`,
    passes: allOf(filters(search)),
    bound,
    limit: search.limit,
  })
  const { rows } = await sql<UserRow & { is_stop: boolean }>`
    with ${parts}
    select ${listColumns}, false as is_stop from found as users
    union all select ${listColumns}, true from stop as users
    order by is_stop, id desc`.execute(tx)
  const stop = rows.find(({ is_stop }) => is_stop)
  return toResult(
    search,
    rows.filter(({ is_stop }) => !is_stop).map(({ is_stop: _isStop, ...row }) => row),
    stop ? { key: null, id: stop.id } : null,
  )
}

/**
 * The users whose address or name contains the text and who match the other filters. Undefined if the text matches more
 * than `bound` users.
 */
export async function scanByText(
  tx: ReadTx,
  search: UserSearch & { q: string },
  bound: number,
): Promise<ScanResult<UserRow> | undefined> {
  const condition = allOf([...filters(search), ...before(search)])
  const { rows } = await sql<UserRow & { is_cut: boolean }>`
    with few as materialized (
      select ${listColumns} from control.users as users where ${matchesText(search.q)} limit ${sql.lit(bound + 1)}
    )
    select one.is_cut, page.* from (select count(*) > ${sql.lit(bound)} as is_cut from few) as one left join (
      select ${listColumns} from few as users where ${condition} order by users.id desc limit ${sql.lit(search.limit + 1)}
    ) as page on true order by page.id desc`.execute(tx)
  if (rows[0]?.is_cut !== false) return undefined
  const matches = rows.filter(({ id }) => id !== null)
  return toResult(
    search,
    matches.map(({ is_cut: _isCut, ...row }) => row),
    null,
  )
}
