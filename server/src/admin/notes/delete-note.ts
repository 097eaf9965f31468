import { deleteNote, findNote, noteChange } from '../../core/control/notes/notes.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'

export const deleteNoteOperation = adminOperation({
  id: 'notes.delete',
  kind: 'delete',
  path: '/admin/projects/:project_id/notes/:id',
  summary: 'Delete a note',
  description: 'Deletes the note. Its text stays in the audit log, outside the hash chain.',
  params: ProjectItemParams,
  body: {},
  example: { reason: 'No longer true' },
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return findNote(tx, project_id, id)
  },
  async run({ tx, target: row }) {
    await deleteNote(tx, row)
    return {
      audit: { projectId: row.project_id, change: noteChange(row.id, row, null) },
      effects: [],
      warnings: [],
      answer: null,
      version: null,
    }
  },
})
