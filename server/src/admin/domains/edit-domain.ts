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
    'Gives a domain another `name`, another `mta_provider`, or both; a body with neither is refused. Every edit registers a replacement identity and resets verification, equal values included: `status` is `pending`, and the `dns_records` are new. The identity before it retires: nothing new is accepted under it, mail already accepted is still signed with it, and then it is deregistered. When the name changes and the domain has address routes, say either `preserve_local_parts: true` or give `route_replacements` with one address under the new name for each of them; catch-all routes follow the domain. Where the name stays, the routes do. Beyond `max_dkim_keys_per_day` a `reason` is required, and the audit row records the exception.',
  params: ProjectItemParams,
  body: Type.Partial(Type.Object({ ...DomainFields, ...RouteFields })).properties,
  // A thousand address routes are 70 KiB.
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
              'Name and provider stay the same: this only registers the domain again and resets its verification.',
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
    ...(before.name === after.name ? [] : [`No mail is accepted from ${before.name} any more.`]),
    `None is accepted from ${after.name} until its new records are seen.`,
    `Mails still queued under the present identity: ${queued}. They go out signed with it${queued === '0' ? '' : '; leave its DKIM record published meanwhile'}.`,
    `The present identity ${before.identity.id} with "${before.identity.provider}" is then deregistered, unless the name lives on there.`,
  ]
}

function movedRoutes(before: DomainRow, after: DomainRow, moves: readonly RouteMove[]): string[] {
  if (before.name === after.name) return []
  return [
    ...moves.map((move) => `Route ${move.id} takes mail for ${move.after} instead of ${move.before}.`),
    `Mail that arrives for ${before.name} is refused from now on.`,
  ]
}
