import Type from 'typebox'
import {
  type DomainRow,
  domainRecord,
  domainView,
  editDomain,
  lockDomain,
  queuedUnder,
  type RouteMove,
} from '../../core/control/domains/domains.ts'
import { Domain, DomainFields, RouteFields } from '../../core/control/domains/wire.ts'
import { lockProject } from '../../core/control/projects/projects.ts'
import { countText } from '../../core/shared/counts.ts'
import { ProjectItemParams } from '../../platform/http/parameters.ts'
import { dkimKeysBeyond, limitWarnings } from '../limits.ts'
import { adminOperation } from '../operation.ts'
import { boundKeyWarnings, claimWarnings, recordsToPublish, registrationEffect } from './consequences.ts'

export const editDomainOperation = adminOperation({
  id: 'domains.edit',
  kind: 'edit',
  path: '/admin/projects/:project_id/domains/:id',
  summary: 'Edit a domain',
  description:
    'Changes the `name`, the `mta_provider`, or both; the body must contain at least one of them. Every edit registers a replacement identity and resets verification, even if the values are the same: `status` becomes `pending`, and the `dns_records` are new. The previous identity is retired: it is not used for new mail, it still signs mail that was already accepted, and it is then deregistered. When the name changes and the domain has address routes, send either `preserve_local_parts: true`, or `route_replacements` with one address under the new name for each route. Catch-all routes stay with the domain. If the name does not change, neither do the routes. A `reason` is required to exceed `max_dkim_keys_per_day`, and the audit entry records the exception.',
  params: ProjectItemParams,
  body: Type.Partial(Type.Object({ ...DomainFields, ...RouteFields })).properties,
  // The replacement addresses of a thousand routes take up 70 KiB.
  bodyLimitBytes: 1024 * 1024,
  refusals: ['already_exists', 'provider_not_allowed', 'address_routes_unresolved', 'limit_exceeded'],
  example: { name: 'mail.example.org', preserve_local_parts: true },
  answer: Domain,
  makesDkimKey: true,
  preload: (mail, { project_id, id }): Promise<string | undefined> => queuedUnder(mail, project_id, id),
  preloadFor: 'preview',
  async target(tx, { project_id, id }) {
    const project = await lockProject(tx, project_id)
    const domain = await lockDomain(tx, project_id, id)
    return { project, domain, version: domain.version }
  },
  async run({ tx, domains, caps, target: { project, domain: before }, preloaded: queued, body }) {
    const { row: after, moves, keysToday } = await editDomain(tx, domains, project, before, body)
    const limitException = dkimKeysBeyond(caps, keysToday)
    return {
      audit: {
        projectId: project.id,
        change: {
          resource: 'domain',
          id: after.id,
          before: domainRecord(before),
          after: domainRecord(after),
        },
        related: moves.map(({ id, ...move }) => ({
          resource: 'route',
          id,
          before: { address: move.before },
          after: { address: move.after },
        })),
        limitException,
      },
      effects: [
        ...stopsUntilVerified(before, after, queued ?? countText(undefined)),
        ...movedRoutes(before, after, moves),
        registrationEffect(after),
        ...recordsToPublish(after),
      ],
      warnings: async () => [
        ...limitWarnings(limitException),
        ...(before.name === after.name && before.mta_provider === after.mta_provider
          ? [
              'The name and provider do not change: this only registers the domain again and resets its verification.',
            ]
          : []),
        ...(await boundKeyWarnings(tx, after)),
        ...(await claimWarnings(tx, after)),
      ],
      answer: domainView(after),
      views: { before: domainView(before), after: domainView(after) },
      version: after.version,
    }
  },
})

function stopsUntilVerified(before: DomainRow, after: DomainRow, queued: string): string[] {
  return [
    ...(before.name === after.name ? [] : [`Mail from ${before.name} is rejected.`]),
    `Mail from ${after.name} is rejected until its new records are verified.`,
    `Messages still queued under the current identity: ${queued}. They are signed with it and sent${queued === '0' ? '' : '; leave its DKIM record published until then'}.`,
    `Then the current identity ${before.identity.id} is deregistered with "${before.identity.provider}", unless the name is still in use there.`,
  ]
}

function movedRoutes(before: DomainRow, after: DomainRow, moves: readonly RouteMove[]): string[] {
  if (before.name === after.name) return []
  return [
    ...moves.map((move) => `Route ${move.id} receives mail for ${move.after} instead of ${move.before}.`),
    `Inbound mail for ${before.name} is rejected.`,
  ]
}
