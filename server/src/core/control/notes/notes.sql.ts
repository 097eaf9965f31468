import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { Range } from '../../shared/pages.ts'

export interface NoteRow extends Selectable<Schema['control.notes']> {
  author_email: string
}

const columns = sql`notes.*, (select email from control.users where id = notes.author_id) as author_email`

const one = (rows: NoteRow[]): NoteRow => {
  const [row] = rows
  if (!row) throw new Error('the statement returned no note')
  return row
}

export async function find(tx: ReadTx, projectId: number, id: number): Promise<NoteRow | undefined> {
  const { rows } = await sql<NoteRow>`
    select ${columns} from control.notes where project_id = ${projectId} and id = ${id}`.execute(tx)
  return rows[0]
}

/** Newest first. */
export async function listByProject(
  tx: ReadTx,
  projectId: number,
  { limit, beforeId }: Range,
): Promise<NoteRow[]> {
  const { rows } = await sql<NoteRow>`
    select ${columns} from control.notes where project_id = ${projectId} and id < ${beforeId}
     order by id desc limit ${limit}`.execute(tx)
  return rows
}

export async function count(tx: ReadTx, projectId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from control.notes where project_id = ${projectId}`.execute(tx)
  return rows[0]?.count ?? 0
}

export async function insert(
  tx: Tx,
  projectId: number,
  { text, authorId }: { text: string; authorId: number },
): Promise<NoteRow> {
  const { rows } = await sql<NoteRow>`
    insert into control.notes (project_id, text, author_id) values (${projectId}, ${text}, ${authorId})
    returning ${columns}`.execute(tx)
  return one(rows)
}

export async function update(tx: Tx, { project_id, id }: NoteRow, text: string): Promise<NoteRow> {
  const { rows } = await sql<NoteRow>`
    update control.notes set text = ${text}, version = version + 1, updated_at = postern.now()
     where project_id = ${project_id} and id = ${id} returning ${columns}`.execute(tx)
  return one(rows)
}

export async function remove(tx: Tx, { project_id, id }: NoteRow): Promise<void> {
  await sql`delete from control.notes where project_id = ${project_id} and id = ${id}`.execute(tx)
}
