import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { Role } from './wire.ts'

export type MemberRow = Omit<Selectable<Schema['control.members']>, 'invitation_hash' | 'invited_by'>

const columns = [
  'id',
  'project_id',
  'user_id',
  'email',
  'name',
  'role',
  'invited_at',
  'joined_at',
  'version',
  'created_at',
  'updated_at',
] as const

export const find = (tx: ReadTx, projectId: number, id: number): Promise<MemberRow | undefined> =>
  tx
    .selectFrom('control.members')
    .select(columns)
    .where('project_id', '=', projectId)
    .where('id', '=', id)
    .executeTakeFirst()

export const lock = (tx: Tx, projectId: number, id: number): Promise<MemberRow | undefined> =>
  tx
    .selectFrom('control.members')
    .select(columns)
    .where('project_id', '=', projectId)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()

export const list = (
  tx: ReadTx,
  projectId: number,
  { limit, beforeId }: { limit: number; beforeId: number },
): Promise<MemberRow[]> =>
  tx
    .selectFrom('control.members')
    .select(columns)
    .where('project_id', '=', projectId)
    .where('id', '<', beforeId)
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()

/** The role of a user who has joined the project. */
export async function findRole(tx: ReadTx, projectId: number, userId: number): Promise<Role | undefined> {
  const row = await tx
    .selectFrom('control.members')
    .select('role')
    .where('project_id', '=', projectId)
    .where('user_id', '=', userId)
    .executeTakeFirst()
  return row?.role as Role | undefined
}

export async function count(tx: ReadTx, projectId: number): Promise<number> {
  const { members } = await tx
    .selectFrom('control.members')
    .select((eb) => eb.fn.countAll<number>().as('members'))
    .where('project_id', '=', projectId)
    .executeTakeFirstOrThrow()
  return members
}

/** For addresses with or without an account. Undefined if the address is already a member or invited. */
export async function insertInvited(
  tx: Tx,
  projectId: number,
  email: string,
  role: Role,
  invitedBy: number,
): Promise<MemberRow | undefined> {
  return tx
    .insertInto('control.members')
    .values({ project_id: projectId, email, role, invited_by: invitedBy })
    .onConflict((conflict) => conflict.doNothing())
    .returning(columns)
    .executeTakeFirst()
}

/** Inserts a member if the address has an account, otherwise an invitation. Undefined if already a member or invited. */
export async function insert(
  tx: Tx,
  projectId: number,
  email: string,
  role: Role,
  invitedBy: number,
): Promise<MemberRow | undefined> {
  const { rows } = await sql<MemberRow>`
    insert into control.members (project_id, user_id, email, name, role, joined_at, invited_by)
    select ${projectId}, account.user_id, ${email}, account.name, ${role},
           case when account.user_id is null then null else postern.now() end, ${invitedBy}
      from (select 1) as one left join control.find_account(${email}) as account on true
    on conflict do nothing
    returning ${sql.join(columns.map((column) => sql.ref(column)))}`.execute(tx)
  return rows[0]
}

export const setRole = (tx: Tx, { project_id, id }: MemberRow, role: Role): Promise<MemberRow> =>
  tx
    .updateTable('control.members')
    .set((eb) => ({ role, version: eb('version', '+', 1), updated_at: sql<Date>`postern.now()` }))
    .where('project_id', '=', project_id)
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow()

export async function remove(tx: Tx, { project_id, id }: MemberRow): Promise<void> {
  await tx.deleteFrom('control.members').where('project_id', '=', project_id).where('id', '=', id).execute()
}

/** The account's membership, or an invitation to its address. */
export async function findByUser(tx: Tx, projectId: number, userId: number): Promise<MemberRow | undefined> {
  return (
    tx
      .selectFrom('control.members')
      .select(columns)
      .where('project_id', '=', projectId)
      .where((eb) =>
        eb.or([
          eb('user_id', '=', userId),
          eb.and([
            eb('user_id', 'is', null),
            eb('email', '=', eb.selectFrom('control.users').select('email').where('id', '=', userId)),
          ]),
        ]),
      )
      // The account's own membership takes precedence over a later invitation to its address.
      .orderBy(sql`user_id is null`)
      .forUpdate()
      .executeTakeFirst()
  )
}

export const promote = (tx: Tx, { project_id, id }: MemberRow, userId: number): Promise<MemberRow> =>
  tx
    .updateTable('control.members')
    .set((eb) => ({
      role: 'owner',
      user_id: userId,
      name: eb.fn.coalesce('name', eb.selectFrom('control.users').select('name').where('id', '=', userId)),
      joined_at: eb.fn.coalesce('joined_at', sql<Date>`postern.now()`),
      invitation_hash: null,
      version: eb('version', '+', 1),
      updated_at: sql<Date>`postern.now()`,
    }))
    .where('project_id', '=', project_id)
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow()

export async function insertOwner(tx: Tx, projectId: number, userId: number): Promise<MemberRow> {
  const { rows } = await sql<MemberRow>`
    insert into control.members (project_id, user_id, email, name, role, joined_at)
    select ${projectId}, id, email, name, 'owner', postern.now() from control.users where id = ${userId}
    returning ${sql.join(columns.map((column) => sql.ref(column)))}`.execute(tx)
  const [row] = rows
  if (!row) throw new Error(`user ${userId} does not exist and cannot become the owner`)
  return row
}

export const findOwner = (tx: Tx, projectId: number): Promise<MemberRow | undefined> =>
  tx
    .selectFrom('control.members')
    .select(columns)
    .where('project_id', '=', projectId)
    .where('role', '=', 'owner')
    .forUpdate()
    .executeTakeFirst()
