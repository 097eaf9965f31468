/** Members of a project: adding, roles, removal, transfer of ownership. */
import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { JobSender } from '../../../platform/jobs/jobs.ts'
import { signInAddress } from '../access/email.ts'
import {
  count,
  find,
  findByUser,
  findOwner,
  findRole,
  insert,
  insertInvited,
  insertOwner,
  list,
  lock,
  type MemberRow,
  promote,
  remove,
  setRole,
} from './members.sql.ts'
import type { Member, Role } from './wire.ts'

export type { MemberRow }

export const memberView = (row: MemberRow): Static<typeof Member> => ({
  id: row.id,
  project_id: row.project_id,
  user_id: row.user_id,
  email: row.email,
  name: row.name,
  role: row.role as Role,
  invited_at: row.invited_at.toISOString(),
  joined_at: row.joined_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

/** Omits the person's name and address, which the audit log stores separately. */
export const memberConfig = ({ user_id, role }: MemberRow) => ({ user_id, role })

/** For the project's activity, which stores the address separately. */
export const memberActivity = ({ email, user_id, role }: MemberRow) => ({ email, user_id, role })

export const memberPerson = ({ email, name }: MemberRow) => ({ email, name })

const existing = (row: MemberRow | undefined, projectId: number, id: number): MemberRow => {
  if (!row) throw new PosternError('not_found', `There is no member ${id} in project ${projectId}.`)
  return row
}

export const findMember = async (tx: ReadTx, projectId: number, id: number): Promise<MemberRow> =>
  existing(await find(tx, projectId, id), projectId, id)

export const lockMember = async (tx: Tx, projectId: number, id: number): Promise<MemberRow> =>
  existing(await lock(tx, projectId, id), projectId, id)

export const listMembers = list

/** A user's role in a project, or undefined if the user has not joined. */
export const memberRole = findRole
export const countMembers = count

export interface NewMember {
  email: string
  role: Role
  /** The user named in the message. */
  invitedBy: number
}

export interface AddedMember {
  row: MemberRow
  /** The number of members including this one, for the plan's limit. */
  count: number
}

/**
 * For administrators: the account with this address becomes a member immediately. An address without an account
 * gets an invitation email after the commit. The caller must hold the lock on the project.
 */
export const createMember = (
  tx: Tx,
  jobs: JobSender,
  projectId: number,
  member: NewMember,
): Promise<AddedMember> => add(tx, jobs, projectId, member, insert)

/**
 * For customers: the address gets an invitation email whether or not it has an account. The response is the same in
 * both cases, and membership requires acceptance (docs/decisions/0023). The caller must hold the lock on the
 * project.
 */
export const inviteMember = (
  tx: Tx,
  jobs: JobSender,
  projectId: number,
  member: NewMember,
): Promise<AddedMember> => add(tx, jobs, projectId, member, insertInvited)

async function add(
  tx: Tx,
  jobs: JobSender,
  projectId: number,
  { email: address, role, invitedBy }: NewMember,
  insertRow: typeof insert,
): Promise<AddedMember> {
  const email = signInAddress(address)
  if (email === undefined) {
    throw new PosternError(
      'validation_failed',
      '"email" must be an email address that can be used to sign in.',
    )
  }
  const row = await insertRow(tx, projectId, email, role, invitedBy)
  if (!row) {
    throw new PosternError(
      'already_exists',
      `${email} is already a member of project ${projectId} or invited to it. To change the role, edit that member.`,
    )
  }
  if (row.user_id === null) {
    await jobs.send(tx, 'system-mail.send', {})
  }
  return { row, count: await count(tx, projectId) }
}

/** Returns `before` if the role does not change. */
export async function editMember(tx: Tx, before: MemberRow, role: Role): Promise<MemberRow> {
  if (before.role === role) return before
  refuseOwner(before)
  if (role === 'owner') {
    throw new PosternError(
      'validation_failed',
      `"role" must not be "owner". To make this member the owner, edit the project's "user_id".`,
    )
  }
  return setRole(tx, before, role)
}

export async function deleteMember(tx: Tx, before: MemberRow): Promise<void> {
  refuseOwner(before)
  await remove(tx, before)
}

function refuseOwner({ role, project_id }: MemberRow): void {
  if (role !== 'owner') return
  throw new PosternError(
    'last_owner',
    `The owner of project ${project_id} cannot be changed or removed. An administrator can transfer the project by editing its "user_id".`,
  )
}

export interface RoleChange {
  before: MemberRow | null
  after: MemberRow
}

/**
 * Sets the owner of a new or transferred project. The previous owner becomes an admin. Returns the role changes.
 */
export async function makeOwner(tx: Tx, projectId: number, userId: number): Promise<RoleChange[]> {
  const old = await findOwner(tx, projectId)
  if (old?.user_id === userId) return []
  // The previous owner's role is changed first, so that a project never has two owners.
  const changes: RoleChange[] = old ? [{ before: old, after: await setRole(tx, old, 'admin') }] : []
  const member = await findByUser(tx, projectId, userId)
  const after = member ? await promote(tx, member, userId) : await insertOwner(tx, projectId, userId)
  return [...changes, { before: member ?? null, after }]
}
