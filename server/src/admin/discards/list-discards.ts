import { discardView, listDiscards } from '../../core/control/discards/discards.ts'
import { Discard } from '../../core/control/discards/wire.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import { discardedBy } from '../../core/mail/dispatch/discards.ts'
import { listOf, newestFirst, PageQuery, type Range } from '../../core/shared/pages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const listDiscardsQuery = adminQuery({
  id: 'discards.list',
  path: '/admin/projects/:project_id/queue/discards',
  summary: "List a project's discards",
  description:
    'Discards of queued mail, newest first. They are kept for 90 days after they finished or were stopped.',
  params: ProjectParams,
  query: PageQuery,
  answer: listOf(Discard),
  async run({ db, mailDbFor, params: { project_id }, query }) {
    const page = await db.read(async (tx) => {
      const { id } = await findProject(tx, project_id)
      return newestFirst(
        query,
        (range: Range) => listDiscards(tx, id, range),
        (row) => row,
      )
    })
    const ids = page.data.map(({ id }) => id)
    const discarded = await mailDbFor(project_id).read((mail) => discardedBy(mail, project_id, ids))
    return { answer: { ...page, data: page.data.map((row) => discardView(row, discarded(row.id))) } }
  },
})
