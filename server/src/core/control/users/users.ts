/** Users: search, roles, administrators' rights, disabling, revoking sessions. */
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
import { type Rights, rightsOf, type User } from './wire.ts'

export type { UserRow }

export const userView = (row: UserRow): Static<typeof User> => ({
  id: row.id,
  email: row.email,
  name: row.name,
  role: row.role as Static<typeof User>['role'],
  rights: rightsOf(row),
  is_active: row.is_active,
  two_factor_enabled: row.two_factor_enabled,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

/** The user as stored in the audit log. A new generation shows that every access token was invalidated. */
export const userConfig = (row: UserRow) => ({
  role: row.role,
  rights: rightsOf(row),
  is_active: row.is_active,
  token_generation: row.token_generation,
})

const existing = (row: UserRow | undefined, id: number): UserRow => {
  if (!row) throw new PosternError('not_found', `There is no user ${id}.`)
  return row
}

export const countProjectsOfUser = countProjects

/** Locks one user. An edit of the user waits. */
export const lockUserRow = async (tx: Tx, id: number): Promise<UserRow> => existing(await lock(tx, id), id)

/** Locks the user against edits; others can hold the same lock. */
export const shareUser = share

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
  rights?: Rights
  is_active?: boolean
  end_sessions?: boolean
}

/** Disabling a user also revokes their sessions. Undefined if nothing changes. */
export async function editUser(
  tx: Tx,
  actorId: number,
  before: LockedUser,
  change: UserChange,
): Promise<{ row: UserRow; endedSessions: number | null } | undefined> {
  requireFullRights(actorId, before.administrators)
  const { role = before.role, is_active = before.is_active, end_sessions = false } = change
  const rights = rightsAfter(before, role, change.rights)
  const ends = end_sessions || (before.is_active && !is_active)
  const isSame = role === before.role && rights === before.rights && is_active === before.is_active
  if (isSame && !ends) return undefined
  if (hasFullRights(before) && !hasFullRights({ role, rights, is_active })) refuseLast(before)
  const endedSessions = ends ? await countSessions(tx, before.id) : null
  if (ends) await deleteSessions(tx, before.id)
  return { row: await update(tx, before.id, { role, rights, is_active, ends }), endedSessions }
}

/**
 * The actor must still be an administrator with full rights after all administrators' rows have been locked. Otherwise a
 * demoted administrator could restore their own role with a request that was already running.
 */
function requireFullRights(actorId: number, administrators: readonly Administrator[]): void {
  const actor = administrators.find(({ id }) => id === actorId)
  if (!actor) throw new PosternError('admin_required', 'You are no longer an administrator.')
  if (actor.rights !== 'full') {
    throw new PosternError('insufficient_rights', 'You no longer have full rights.')
  }
}

/** Only administrators have rights. A new administrator has full rights unless others are given. */
function rightsAfter(before: UserRow, role: string, given: Rights | undefined): string {
  if (role === 'admin') return given ?? (before.role === 'admin' ? before.rights : 'full')
  if (given === undefined) return 'full'
  throw new PosternError(
    'validation_failed',
    '"rights": only administrators have rights. Set "role" to "admin" as well.',
  )
}

const hasFullRights = ({ role, rights, is_active }: Pick<UserRow, 'role' | 'rights' | 'is_active'>) =>
  role === 'admin' && rights === 'full' && is_active

/**
 * An administrator without a second factor cannot obtain an access token, so the last administrator with full rights and a
 * second factor cannot be removed or limited. If no administrator with full rights has a second factor, this applies to the
 * last active one with full rights.
 */
function refuseLast({ id, two_factor_enabled, administrators }: LockedUser): void {
  const others = administrators.filter((one) => one.id !== id && one.rights === 'full')
  if (two_factor_enabled ? others.some((one) => one.two_factor_enabled) : others.length > 0) return
  throw new PosternError(
    'last_administrator',
    two_factor_enabled
      ? `User ${id} is the last active administrator with full rights and two-factor authentication. Another administrator with full rights must set up two-factor authentication first.`
      : `User ${id} is the last active administrator with full rights. Give another user full rights first.`,
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
