import { domainView, lockDomain, requestCheck } from '../../core/control/domains/domains.ts'
import { Domain } from '../../core/control/domains/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const verifyDomainOperation = customerOperation({
  id: 'domains.verify',
  kind: 'command',
  path: '/projects/:project_id/domains/:id/verify',
  summary: 'Look at the DNS records of a domain now',
  description:
    'Queues an immediate DNS check. The look is taken after the answer: read the domain again in some seconds, `last_checked_at` tells when it was and `last_check_error` what it missed. No version moves.',
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
