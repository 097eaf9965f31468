import { domainView, lockDomain, requestCheck } from '../../core/control/domains/domains.ts'
import { Domain } from '../../core/control/domains/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const verifyDomainOperation = customerOperation({
  id: 'domains.verify',
  kind: 'command',
  path: '/projects/:project_id/domains/:id/verify',
  summary: "Check a domain's DNS records now",
  description:
    'Queues an immediate DNS check, which runs asynchronously. Read the domain again a few seconds later: `last_checked_at` is the time of the check, and `last_check_error` says what is missing. The version does not change.',
  params: ItemParams,
  body: {},
  example: {},
  answer: Domain,
  target: ({ tx, project, domainId, params }) => lockDomain(tx, project.id, params.id, domainId),
  async run({ tx, deps, target: before }) {
    const row = await requestCheck(tx, deps.domains, before)
    const activity = { resource: 'domain', id: row.id, before: null, after: null }
    return { answer: domainView(row), activity, version: row.version }
  },
})
