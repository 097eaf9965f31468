import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import {
  continueScan,
  hasTrigram,
  type ScanResult,
  scanMs,
  searchMs,
  stayOnIndexes,
  withScanTimeout,
} from '../../shared/bounded-scan.ts'
import {
  type Administrator,
  countProjects,
  countSessions,
  deleteSessions,
  find,
  lock,
  lockAdministrators,
  look,
  lookByText,
  share,
  type UserRow,
  type UserSearch,
  update,
} from './users.sql.ts'
import type { User } from './wire.ts'

export type { UserRow }

export const userView = (row: UserRow): Static<typeof User> => ({
  id: row.id,
  email: row.email,
  name: row.name,
  role: row.role as Static<typeof User>['role'],
  is_active: row.is_active,
  two_factor_enabled: row.two_factor_enabled,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

/** What the audit keeps: the generation tells that every access token was ended. */
export const userConfig = ({ role, is_active, token_generation }: UserRow) => ({
  role,
  is_active,
  token_generation,
})

const existing = (row: UserRow | undefined, id: number): UserRow => {
  if (!row) throw new PosternError('not_found', `There is no user ${id}.`)
  return row
}

export const countProjectsOfUser = countProjects

export const findUser = async (tx: ReadTx, id: number): Promise<UserRow> => existing(await find(tx, id), id)

// Rows looked at, in the table itself: 5,000 take about 8 ms on two shared cores.
export const userBounds = { firstLook: 2_000, furtherLook: 5_000, fewInTable: 3_000, scanMs, searchMs }

/** Newest first. A part of a name that a first look finds too rarely is looked up by its letters. */
export async function searchUsers(
  tx: ReadTx,
  search: UserSearch,
  bounds = userBounds,
): Promise<ScanResult<UserRow>> {
  const { q, limit } = search
  const deadline = performance.now() + bounds.scanMs
  const first = await look(tx, search, bounds.firstLook)
  if (first.next === null || first.rows.length === limit) return first
  await stayOnIndexes(tx)
  const few = hasTrigram(q)
    ? await withScanTimeout(tx, bounds.searchMs, () => lookByText(tx, { ...search, q }, bounds.fewInTable))
    : undefined
  return (
    few ??
    continueScan(first, limit, deadline, ({ id }, limit) =>
      look(tx, { ...search, beforeId: id, limit }, bounds.furtherLook),
    )
  )
}

export interface LockedUser extends UserRow {
  /** The active administrators, locked as well. */
  administrators: Administrator[]
}

export async function lockUser(tx: Tx, id: number): Promise<LockedUser> {
  const administrators = await lockAdministrators(tx)
  const row = existing(await lock(tx, id), id)
  return { ...row, administrators }
}

export interface UserChange {
  role?: 'user' | 'admin'
  is_active?: boolean
  end_sessions?: boolean
}

/**
 * A user who is disabled is signed out, too. Undefined when nothing differs.
 *
 * Under the lock on all administrators, whoever edits must be one: otherwise somebody could give themselves back, in a
 * request that was on its way, what was just taken from them.
 */
export async function editUser(
  tx: Tx,
  actorId: number,
  before: LockedUser,
  { role = before.role as 'user' | 'admin', is_active = before.is_active, end_sessions = false }: UserChange,
): Promise<{ row: UserRow; endedSessions: number | null } | undefined> {
  if (!before.administrators.some(({ id }) => id === actorId)) {
    throw new PosternError('admin_required', 'You are not an administrator any more.')
  }
  const ends = end_sessions || (before.is_active && !is_active)
  if (role === before.role && is_active === before.is_active && !ends) return undefined
  const wasAdministrator = before.role === 'admin' && before.is_active
  if (wasAdministrator && (role !== 'admin' || !is_active)) refuseLast(before)
  const endedSessions = ends ? await countSessions(tx, before.id) : null
  if (ends) await deleteSessions(tx, before.id)
  return { row: await update(tx, before.id, { role, is_active, ends }), endedSessions }
}

/**
 * An administrator without a second factor gets no access token. So the last one with a second factor stays; where nobody
 * has one, as before the first is set up, the last active administrator.
 */
function refuseLast({ id, administrators }: LockedUser): void {
  const others = administrators.filter((one) => one.id !== id)
  const isEnrolled = administrators.some((one) => one.id === id && one.two_factor_enabled)
  if (isEnrolled ? others.some((one) => one.two_factor_enabled) : others.length > 0) return
  throw new PosternError(
    'last_administrator',
    isEnrolled
      ? `User ${id} is the last active administrator with a second factor. Have another administrator set one up first.`
      : `User ${id} is the last active administrator. Make another user one first.`,
  )
}

/** Somebody to whom a project is to be given. */
export async function requireActiveUser(tx: Tx, id: number, field: string): Promise<UserRow> {
  const user = await share(tx, id)
  if (!user) throw new PosternError('validation_failed', `"${field}": there is no user ${id}.`)
  if (!user.is_active) {
    throw new PosternError(
      'validation_failed',
      `"${field}": user ${id} is not active. Choose another, or activate them first.`,
    )
  }
  return user
}
