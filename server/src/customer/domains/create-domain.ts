import { createDomain, domainRecord, domainView } from '../../core/control/domains/domains.ts'
import { Domain, NewDomainFields } from '../../core/control/domains/wire.ts'
import { NoParams } from '../../platform/http/parameters.ts'
import { requireDkimKeys, requireRoom } from '../limits.ts'
import { customerOperation } from '../operation.ts'

export const createDomainOperation = customerOperation({
  id: 'domains.create',
  kind: 'create',
  path: '/projects/:project_id/domains',
  summary: 'Add a domain',
  description:
    "Adds a domain and registers an identity for it with its provider. The domain can send once its DNS records are published and verified. For Amazon SES, the DKIM records appear after SES has registered the name. Returns `limit_exceeded` if `max_dkim_keys_per_day` or the current plan's `max_domains` would be exceeded.",
  params: NoParams,
  body: NewDomainFields,
  refusals: ['already_exists', 'limit_exceeded', 'provider_not_allowed'],
  example: { name: 'mail.example.com', mta_provider: 'ses' },
  answer: Domain,
  makesDkimKey: true,
  async run({ tx, project, deps, domains, body }) {
    const { row, count, keysToday } = await createDomain(tx, domains, project, body)
    await requireRoom(tx, project.id, 'max_domains', count)
    requireDkimKeys(deps.caps, keysToday)
    return {
      answer: domainView(row),
      activity: { resource: 'domain', id: row.id, before: null, after: domainRecord(row) },
      version: row.version,
      location: `/v1/projects/${project.id}/domains/${row.id}`,
    }
  },
})
