import { editNote, findNote, noteChange, noteView } from '../../core/control/notes/notes.ts'
import { Note, NoteText } from '../../core/control/notes/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation, unchanged } from '../operation.ts'

export const editNoteOperation = adminOperation({
  id: 'notes.edit',
  kind: 'edit',
  path: '/admin/projects/:project_id/notes/:id',
  summary: 'Edit a note',
  description: 'Replaces the text. The author stays the same; the audit log shows who edited the note.',
  params: ProjectItemParams,
  body: { text: NoteText },
  example: { text: 'Ada from billing called: the invoices go out on the 1st.' },
  answer: Note,
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return findNote(tx, project_id, id)
  },
  async run({ tx, target: before, body }) {
    const after = await editNote(tx, before, body.text)
    return {
      audit:
        after === before
          ? unchanged
          : { projectId: after.project_id, change: noteChange(after.id, before, after) },
      effects: [],
      warnings: [],
      answer: noteView(after),
      version: after.version,
    }
  },
})
