import { createNote, noteChange, noteView } from '../../core/control/notes/notes.ts'
import { Note, NoteText } from '../../core/control/notes/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'

export const createNoteOperation = adminOperation({
  id: 'notes.create',
  kind: 'create',
  path: '/admin/projects/:project_id/notes',
  summary: 'Add a note to a project',
  description:
    'Adds a note for other administrators. Members of the project never see it. A project can have 200 notes.',
  params: ProjectParams,
  body: { text: NoteText },
  refusals: ['limit_exceeded'],
  example: { text: 'Ada from billing called: the invoices go out on the 28th.' },
  answer: Note,
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, params: { project_id }, body, actorId }) {
    const row = await createNote(tx, project_id, { text: body.text, authorId: actorId })
    return {
      audit: { projectId: project_id, change: noteChange(row.id, null, row) },
      effects: ['Only administrators see the note.'],
      warnings: [],
      answer: noteView(row),
      version: row.version,
      location: `/v1/admin/projects/${project_id}/notes/${row.id}`,
    }
  },
})
