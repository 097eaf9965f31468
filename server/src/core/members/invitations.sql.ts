import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../platform/db/db.ts'
import type { MemberRow } from './members.sql.ts'

export interface Invitation {
  member_id: number
  version: number
  email: string
  role: string
  project_name: string
  /** Null when it is not known. */
  invited_by: string | null
  ends_at: Date
}

const waits = sql<boolean>`members.user_id is null and members.invitation_sent_at is null
  and members.invited_at > postern.now() - control.invitation_lifetime()`

/** Undefined when there is nobody to be told: joined, told, removed, or too late. */
export async function lockUnsent(
  tx: Tx,
  projectId: number,
  memberId: number,
): Promise<Invitation | undefined> {
  const { rows } = await sql<Invitation>`
    select members.id as member_id, members.version, members.email, members.role, projects.name as project_name,
           inviters.name as invited_by, members.invited_at + control.invitation_lifetime() as ends_at
      from control.members as members
      join control.projects as projects on projects.id = members.project_id
      left join control.users as inviters on inviters.id = members.invited_by
     where members.project_id = ${projectId} and members.id = ${memberId} and ${waits}
       for no key update of members`.execute(tx)
  return rows[0]
}

/** The version stays: nobody's configuration has changed. */
export async function storeHash(tx: Tx, memberId: number, hash: Buffer): Promise<void> {
  await tx
    .updateTable('control.members')
    .set({ invitation_hash: hash })
    .where('id', '=', memberId)
    .where('user_id', 'is', null)
    .execute()
}

export async function markSent(tx: Tx, memberId: number): Promise<void> {
  await tx
    .updateTable('control.members')
    .set({ invitation_sent_at: sql<Date>`postern.now()` })
    .where('id', '=', memberId)
    .execute()
}

/** Those whose own job has had its time, oldest first. */
export async function listUnsent(
  tx: ReadTx,
  limit: number,
): Promise<{ project_id: number; member_id: number }[]> {
  const { rows } = await sql<{ project_id: number; member_id: number }>`
    select members.project_id, members.id as member_id from control.members as members
     where ${waits} and members.invited_at < postern.now() - interval '2 minutes'
     order by members.invited_at limit ${limit}`.execute(tx)
  return rows
}

/** Undefined when the token is none, was used or has expired. */
export async function join(
  tx: Tx,
  tokenHash: Buffer,
  userId: number,
): Promise<(MemberRow & { is_joined: boolean }) | undefined> {
  const { rows } = await sql<MemberRow & { is_joined: boolean }>`
    select * from control.join_project(${tokenHash}, ${userId})`.execute(tx)
  return rows[0]
}

/** Undefined when the token is none, was used or has expired; null when the address has an account. */
export async function insertInvitedUser(
  tx: Tx,
  tokenHash: Buffer,
  name: string,
): Promise<number | null | undefined> {
  const { rows } = await sql<{ user_id: number | null }>`
    select control.create_invited_user(${tokenHash}, ${name}) as user_id`.execute(tx)
  return rows[0]?.user_id
}
