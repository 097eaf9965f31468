import { findNote, noteView } from '../../core/control/notes/notes.ts'
import { Note } from '../../core/control/notes/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showNote = adminQuery({
  id: 'notes.show',
  path: '/admin/projects/:project_id/notes/:id',
  summary: 'Show a note',
  description: "One note. The `ETag` is the note's version.",
  params: ProjectItemParams,
  query: {},
  answer: Note,
  hasVersion: true,
  async run({ db, params: { project_id, id } }) {
    const row = await db.read((tx) => findNote(tx, project_id, id))
    return { answer: noteView(row), version: row.version }
  },
})
