/**
 * Notes: what administrators want to remember about a project. Its members never see them. Every caller that writes one
 * holds the lock on the project. A note can contain personal data, so the audit chain has only a digest of its text
 * (core/control/audit/addresses.ts).
 */
import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { plainText } from '../../shared/text.ts'
import type { Change } from '../audit/record.ts'
import { count, find, insert, listByProject, type NoteRow, remove, update } from './notes.sql.ts'
import { maxNoteCharacters, type Note } from './wire.ts'

export type { NoteRow }

export const maxNotes = 200

export const listNotes = listByProject

export const noteView = (row: NoteRow): Static<typeof Note> => ({
  id: row.id,
  project_id: row.project_id,
  text: row.text,
  author: { id: row.author_id, email: row.author_email },
  version: row.version,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

export const noteChange = (id: number, before: NoteRow | null, after: NoteRow | null): Change => ({
  resource: 'note',
  id,
  before: before && { text: before.text },
  after: after && { text: after.text },
})

export async function findNote(tx: ReadTx, projectId: number, id: number): Promise<NoteRow> {
  const row = await find(tx, projectId, id)
  if (!row) throw new PosternError('not_found', `There is no note ${id} in project ${projectId}.`)
  return row
}

export async function createNote(
  tx: Tx,
  projectId: number,
  { text, authorId }: { text: string; authorId: number },
): Promise<NoteRow> {
  const wanted = noteText(text)
  if ((await count(tx, projectId)) >= maxNotes)
    throw new PosternError(
      'limit_exceeded',
      `The project already has ${maxNotes} notes. Delete one of them first.`,
    )
  return insert(tx, projectId, { text: wanted, authorId })
}

/** Returns `before` if nothing changes. */
export async function editNote(tx: Tx, before: NoteRow, text: string): Promise<NoteRow> {
  const wanted = noteText(text)
  return wanted === before.text ? before : update(tx, before, wanted)
}

export const deleteNote = remove

const noteText = (text: string): string => plainText(text, 'text', maxNoteCharacters)
