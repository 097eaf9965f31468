import { listNotes, noteView } from '../../core/control/notes/notes.ts'
import { Note } from '../../core/control/notes/wire.ts'
import { requireProject } from '../../core/control/projects/projects.ts'
import { listOf, newestFirst, PageQuery } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listNotesQuery = adminQuery({
  id: 'notes.list',
  path: '/admin/projects/:project_id/notes',
  summary: "List administrators' notes about a project",
  description: 'The notes, newest first. Members of the project do not see them.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(Note),
  run: ({ db, params: { project_id }, query }) =>
    db.read(async (tx) => {
      await requireProject(tx, project_id)
      return { answer: await newestFirst(query, (range) => listNotes(tx, project_id, range), noteView) }
    }),
})
