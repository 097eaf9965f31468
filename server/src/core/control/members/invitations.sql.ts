import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { MemberRow } from './members.sql.ts'

export interface Invitation {
  email: string
  role: string
  project_id: number
  project_name: string
  ends_at: Date
}

/** Undefined if the invitation was accepted or removed, or has expired. */
export async function lockPending(tx: Tx, memberId: number): Promise<Invitation | undefined> {
  const { rows } = await sql<Invitation>`
    select members.email, members.role, members.project_id, projects.name as project_name,
           members.invited_at + control.invitation_lifetime() as ends_at
      from control.members as members
      join control.projects as projects on projects.id = members.project_id
     where members.id = ${memberId} and members.user_id is null
       and members.invited_at > postern.now() - control.invitation_lifetime()
       for no key update of members`.execute(tx)
  return rows[0]
}

/** Does not change the version, because the configuration stays the same. */
export async function storeHash(tx: Tx, memberId: number, hash: Buffer): Promise<void> {
  await tx
    .updateTable('control.members')
    .set({ invitation_hash: hash })
    .where('id', '=', memberId)
    .where('user_id', 'is', null)
    .execute()
}

/** Undefined if the token is invalid, was used or has expired. */
export async function join(
  tx: Tx,
  tokenHash: Buffer,
  userId: number,
): Promise<(MemberRow & { is_joined: boolean }) | undefined> {
  const { rows } = await sql<MemberRow & { is_joined: boolean }>`
    select * from control.accept_invitation_token(${tokenHash}, ${userId})`.execute(tx)
  return rows[0]
}

/** The same for the account with the invited address. Undefined if the invitation is not for that address. */
export async function joinInvited(
  tx: Tx,
  memberId: number,
  userId: number,
): Promise<(MemberRow & { is_joined: boolean }) | undefined> {
  const { rows } = await sql<MemberRow & { is_joined: boolean }>`
    select * from control.accept_invitation(${memberId}, ${userId})`.execute(tx)
  return rows[0]
}

export interface PendingRow {
  id: number
  project_id: number
  project_name: string
  role: string
  invited_at: Date
  expires_at: Date
}

/** The invitations that `control.accept_invitation` would accept for the user, newest first. */
export async function listPending(
  tx: ReadTx,
  userId: number,
  { limit, beforeId }: { limit: number; beforeId: number },
): Promise<PendingRow[]> {
  const { rows } = await sql<PendingRow>`
    select members.id, members.project_id, projects.name as project_name, members.role, members.invited_at,
           members.invited_at + control.invitation_lifetime() as expires_at
      from control.members as members
      join control.projects as projects on projects.id = members.project_id
      join control.users as users on users.email = members.email
     where users.id = ${userId} and users.is_active and users.email_verified
       and members.user_id is null and members.id < ${beforeId}
       and not exists (select from control.members as joined
                        where joined.project_id = members.project_id and joined.user_id = ${userId})
       and members.invited_at > postern.now() - control.invitation_lifetime()
     order by members.id desc limit ${limit}`.execute(tx)
  return rows
}

export interface InvitationCounts {
  of_project: number
  /** 0 for an administrator, who is not counted. */
  of_user: number
  of_address: number
}

/** Increments today's counts and returns them. */
export async function countInvitation(
  tx: Tx,
  projectId: number,
  userId: number | null,
  email: string,
): Promise<InvitationCounts> {
  const { rows } = await sql<InvitationCounts>`
    select * from control.count_invitation(${projectId}, ${userId}, ${email})`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the count returned no row')
  return row
}

export interface ShownInvitation {
  email: string
  project_id: number
  project_name: string
  role: string
  expires_at: Date
  has_account: boolean
}

/** Undefined if the token is invalid, was used or has expired. */
export async function findByToken(tx: ReadTx, tokenHash: Buffer): Promise<ShownInvitation | undefined> {
  const { rows } = await sql<ShownInvitation>`
    select * from control.find_invitation(${tokenHash})`.execute(tx)
  return rows[0]
}

/** Undefined if the token is invalid, was used or has expired; null if the address has an account. */
export async function insertInvitedUser(
  tx: Tx,
  tokenHash: Buffer,
  name: string,
): Promise<number | null | undefined> {
  const { rows } = await sql<{ user_id: number | null }>`
    select control.create_invited_user(${tokenHash}, ${name}) as user_id`.execute(tx)
  return rows[0]?.user_id
}

export interface ExpiredInvitation {
  id: number
  project_id: number
  email: string
  role: string
}

/** Invitations that expired more than 30 days ago, oldest first. */
export async function listExpired(tx: ReadTx, limit: number): Promise<ExpiredInvitation[]> {
  const { rows } = await sql<ExpiredInvitation>`
    select id, project_id, email, role from control.members
     where user_id is null and invited_at < postern.now() - control.invitation_lifetime() - interval '30 days'
     order by invited_at limit ${limit}`.execute(tx)
  return rows
}

/** False if the invitation was accepted or deleted. */
export async function removeInvitation(tx: Tx, projectId: number, id: number): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('control.members')
    .where('project_id', '=', projectId)
    .where('id', '=', id)
    .where('user_id', 'is', null)
    .executeTakeFirst()
  return numDeletedRows === 1n
}
