import { deleteDomain, domainRecord, lockDomain } from '../../core/control/domains/domains.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const deleteDomainOperation = customerOperation({
  id: 'domains.delete',
  kind: 'delete',
  path: '/projects/:project_id/domains/:id',
  summary: 'Delete a domain',
  description:
    'Deletes a domain permanently. Its identity is deregistered with the provider after mail that was already accepted has been sent. Returns `in_use` while a route or an API key refers to the domain.',
  params: ItemParams,
  body: {},
  refusals: ['in_use'],
  example: {},
  target: ({ tx, project, domainId, params }) => lockDomain(tx, project.id, params.id, domainId),
  async run({ tx, deps, target: before }) {
    await deleteDomain(tx, deps.domains, before)
    const activity = { resource: 'domain', id: before.id, before: domainRecord(before), after: null }
    return { answer: null, activity, version: null }
  },
})
