import { beyond } from '../../core/control/caps/caps.ts'
import { createDomain, domainRecord, domainView } from '../../core/control/domains/domains.ts'
import { Domain, NewDomainFields } from '../../core/control/domains/wire.ts'
import { lockProject, planInForce } from '../../core/control/projects/projects.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { dkimKeysBeyond, limitWarnings } from '../limits.ts'
import { adminOperation } from '../operation.ts'
import { claimWarnings, recordsToPublish, registrationEffect } from './consequences.ts'

export const createDomainOperation = adminOperation({
  id: 'domains.create',
  kind: 'create',
  path: '/admin/projects/:project_id/domains',
  summary: 'Add a domain',
  description:
    "Adds a domain and registers an identity for it with its provider. The domain can send once its DNS records are published and verified. For Amazon SES, the DKIM records appear after SES has registered the name. A `reason` is required to exceed `max_dkim_keys_per_day` or the current plan's `max_domains`, and the audit entry records the exception.",
  params: ProjectParams,
  body: NewDomainFields,
  refusals: ['already_exists', 'limit_exceeded', 'provider_not_allowed'],
  example: { name: 'mail.example.com', mta_provider: 'ses' },
  answer: Domain,
  makesDkimKey: true,
  target: (tx, { project_id }) => lockProject(tx, project_id),
  async run({ tx, domains, caps, target: project, body }) {
    const { row, count, keysToday } = await createDomain(tx, domains, project, body)
    // Read after the lock: the project may have changed while the request waited for it.
    const { max_domains: limit } = await planInForce(tx, project.id)
    const limitException = beyond('max_domains', limit, count) ?? dkimKeysBeyond(caps, keysToday)
    return {
      audit: {
        projectId: project.id,
        change: { resource: 'domain', id: row.id, before: null, after: domainRecord(row) },
        limitException,
      },
      effects: [
        registrationEffect(row),
        ...recordsToPublish(row),
        `The project will have ${count} of ${limit} domains in its plan.`,
      ],
      warnings: async () => [...limitWarnings(limitException), ...(await claimWarnings(tx, row))],
      answer: domainView(row),
      views: { before: null, after: domainView(row) },
      version: row.version,
      location: `/v1/admin/projects/${project.id}/domains/${row.id}`,
    }
  },
})
