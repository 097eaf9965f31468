import {
  deleteDomain,
  domainRecord,
  domainView,
  lockDomain,
  queuedUnder,
} from '../../core/control/domains/domains.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { countText } from '../../core/shared/counts.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { adminOperation } from '../operation.ts'

export const deleteDomainOperation = adminOperation({
  id: 'domains.delete',
  kind: 'delete',
  path: '/admin/projects/:project_id/domains/:id',
  summary: 'Remove a domain',
  description:
    'Deletes a domain for good; its identity is deregistered with the provider once the mail accepted under it is gone. Refused with `in_use` while a route or an API key names the domain.',
  params: ProjectItemParams,
  body: {},
  refusals: ['in_use'],
  example: { reason: 'The customer gave the domain up' },
  preload: (mail, { project_id, id }): Promise<string | undefined> => queuedUnder(mail, project_id, id),
  preloadFor: 'preview',
  async target(tx, { project_id, id }) {
    await lockProject(tx, project_id)
    return lockDomain(tx, project_id, id)
  },
  async run({ tx, domains, target: before, preloaded: queued }) {
    await deleteDomain(tx, domains, before)
    return {
      audit: {
        projectId: before.project_id,
        change: { resource: 'domain', id: before.id, before: domainRecord(before), after: null },
      },
      effects: [
        `No new mail is accepted from ${before.name}, and mail that arrives for it is refused.`,
        `Mails still queued under its identity: ${queued ?? countText(undefined)}. They go out signed with it; after the last one it is deregistered with "${before.identity.provider}", unless another project has the name there.`,
        'Its DNS records can be removed once the last mail has arrived.',
      ],
      warnings:
        before.status === 'verified'
          ? [`${before.name} is verified: mail from this domain is refused as soon as it is deleted.`]
          : [],
      answer: null,
      views: { before: domainView(before), after: null },
      version: null,
    }
  },
})
