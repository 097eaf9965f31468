import { domainView, findDomain } from '../../core/control/domains/domains.ts'
import { Domain } from '../../core/control/domains/wire.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const showDomain = adminQuery({
  id: 'domains.show',
  path: '/admin/projects/:project_id/domains/:id',
  summary: 'Show a domain',
  description:
    'One domain of a project, with its identity, its DNS records and the results of the last check.',
  params: ProjectItemParams,
  query: {},
  answer: Domain,
  hasVersion: true,
  async run({ db, params }) {
    const row = await db.read((tx) => findDomain(tx, params.project_id, params.id))
    return { answer: domainView(row), version: row.version }
  },
})
