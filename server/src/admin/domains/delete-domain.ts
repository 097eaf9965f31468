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
  summary: 'Delete a domain',
  description:
    'Deletes a domain permanently. Its identity is deregistered with the provider after mail that was already accepted has been sent. Returns `in_use` while a route or an API key refers to the domain.',
  params: ProjectItemParams,
  body: {},
  refusals: ['in_use'],
  example: { reason: 'The customer no longer owns the domain' },
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
        `New mail from ${before.name} and inbound mail for it are rejected.`,
        `Messages still queued under its identity: ${queued ?? countText(undefined)}. They are signed with it and sent. Then the identity is deregistered with "${before.identity.provider}", unless another project has registered the name there.`,
        'Its DNS records can be removed after the last message is delivered.',
      ],
      warnings:
        before.status === 'verified'
          ? [`${before.name} is verified: mail from this domain is rejected as soon as it is deleted.`]
          : [],
      answer: null,
      views: { before: domainView(before), after: null },
      version: null,
    }
  },
})
