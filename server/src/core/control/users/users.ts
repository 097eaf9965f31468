/** Users: search, roles, disabling, revoking sessions. */
import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import {
  continueScan,
  disableSeqScan,
  hasTrigram,
  type ScanResult,
  scanMs,
  searchMs,
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
  scan,
  scanByText,
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

/** The user as stored in the audit log. A new generation shows that every access token was invalidated. */
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

// Rows scanned in the table itself: 5,000 take about 8 ms on two shared cores.
export const userBounds = { firstScan: 2_000, nextScan: 5_000, fewInTable: 3_000, scanMs, searchMs }

/** Newest first. If the first scan finds too few matches for a text, the trigram index is used. */
export async function searchUsers(
  tx: ReadTx,
  search: UserSearch,
  bounds = userBounds,
): Promise<ScanResult<UserRow>> {
  const { q, limit } = search
  const deadline = performance.now() + bounds.scanMs
  const first = await scan(tx, search, bounds.firstScan)
  if (first.next === null || first.rows.length === limit) return first
  await disableSeqScan(tx)
  const few = hasTrigram(q)
    ? await withScanTimeout(tx, bounds.searchMs, () => scanByText(tx, { ...search, q }, bounds.fewInTable))
    : undefined
  return (
    few ??
    continueScan(first, limit, deadline, ({ id }, limit) =>
      scan(tx, { ...search, beforeId: id, limit }, bounds.nextScan),
    )
  )
}

export interface LockedUser extends UserRow {
  /** The active administrators. Their rows are locked as well. */
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
 * Disabling a user also revokes their sessions. Undefined if nothing changes.
 *
 * The actor must still be an administrator after all administrators' rows have been locked. Otherwise a demoted
 * administrator could restore their own role with a request that was already running.
 */
export async function editUser(
  tx: Tx,
  actorId: number,
  before: LockedUser,
  { role = before.role as 'user' | 'admin', is_active = before.is_active, end_sessions = false }: UserChange,
): Promise<{ row: UserRow; endedSessions: number | null } | undefined> {
  if (!before.administrators.some(({ id }) => id === actorId)) {
    throw new PosternError('admin_required', 'You are no longer an administrator.')
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
 * An administrator without a second factor cannot obtain an access token, so the last administrator with a second factor
 * cannot be removed. If no administrator has one, the last active administrator cannot be removed.
 */
function refuseLast({ id, administrators }: LockedUser): void {
  const others = administrators.filter((one) => one.id !== id)
  const hasSecondFactor = administrators.some((one) => one.id === id && one.two_factor_enabled)
  if (hasSecondFactor ? others.some((one) => one.two_factor_enabled) : others.length > 0) return
  throw new PosternError(
    'last_administrator',
    hasSecondFactor
      ? `User ${id} is the last active administrator with two-factor authentication. Another administrator must set up two-factor authentication first.`
      : `User ${id} is the last active administrator. Make another user an administrator first.`,
  )
}

/** The user who is to become the owner of a project. */
export async function requireActiveUser(tx: Tx, id: number, field: string): Promise<UserRow> {
  const user = await share(tx, id)
  if (!user) throw new PosternError('validation_failed', `"${field}": user ${id} does not exist.`)
  if (!user.is_active) {
    throw new PosternError(
      'validation_failed',
      `"${field}": user ${id} is disabled. Choose another user, or enable this one first.`,
    )
  }
  return user
}
