import { sharedOverview } from '../../core/overview/shared-overview.ts'
import { Overview } from '../../core/overview/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showOverviewQuery = adminQuery({
  id: 'overview.show',
  path: '/admin/overview',
  summary: 'Show the overview',
  description:
    'The state of the installation: the mail of the last 24 hours, the queue, the running processes, the projects that need attention, and the last changes.',
  params: NoParams,
  query: {},
  answer: Overview,
  run: async ({ db, cells }) => ({
    answer: await sharedOverview({ db, cells: cells.all.map(({ name, mail }) => ({ name, db: mail })) }),
  }),
})
