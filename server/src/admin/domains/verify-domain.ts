import { domainView, lockDomain, requestCheck } from '../../core/control/domains/domains.ts'
import { Domain } from '../../core/control/domains/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'

export const verifyDomainOperation = adminOperation({
  id: 'domains.verify',
  kind: 'command',
  path: '/admin/projects/:project_id/domains/:id/verify',
  summary: "Check a domain's DNS records now",
  description:
    'Queues an immediate DNS check, which runs asynchronously. Read the domain again a few seconds later; `last_checked_at` shows the time of the check. The version does not change. Returns `domain_claimed` while the name is verified in another project.',
  params: ProjectItemParams,
  body: {},
  refusals: ['domain_claimed'],
  example: { reason: 'The customer has published the records' },
  answer: Domain,
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockDomain(tx, project_id, id)
  },
  async run({ tx, domains, target: before }) {
    const after = await requestCheck(tx, domains, before)
    const due = ({ next_check_at }: { next_check_at: Date | null }) => ({
      next_check_at: next_check_at?.toISOString() ?? null,
    })
    return {
      audit: {
        projectId: after.project_id,
        change: { resource: 'domain', id: after.id, before: due(before), after: due(after) },
      },
      effects: ['The DNS records are checked within seconds. The domain then shows the result.'],
      warnings: [],
      answer: domainView(after),
      version: after.version,
    }
  },
})
