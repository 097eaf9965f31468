import { domainView, findDomain } from '../../core/control/domains/domains.ts'
import { Domain } from '../../core/control/domains/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerQuery } from '../operation.ts'

export const showDomain = customerQuery({
  id: 'domains.show',
  path: '/projects/:project_id/domains/:id',
  summary: 'Show a domain',
  description: 'Returns one domain with its identity, its DNS records and the results of the last check.',
  params: ItemParams,
  query: {},
  answer: Domain,
  hasVersion: true,
  async run({ tx, projectId, domainId, params }) {
    const row = await findDomain(tx, projectId, params.id, domainId)
    return { answer: domainView(row), version: row.version }
  },
})
