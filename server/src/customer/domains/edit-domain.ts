import Type from 'typebox'
import { domainRecord, domainView, editDomain, lockDomain } from '../../core/control/domains/domains.ts'
import { domainName } from '../../core/control/domains/name.ts'
import { Domain, DomainFields, RouteFields } from '../../core/control/domains/wire.ts'
import { PosternError } from '../../platform/errors.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { requireDkimKeys } from '../limits.ts'
import { changeOf, customerOperation } from '../operation.ts'

export const editDomainOperation = customerOperation({
  id: 'domains.edit',
  kind: 'edit',
  path: '/projects/:project_id/domains/:id',
  summary: 'Edit a domain',
  description:
    'Changes the `name`, the `mta_provider`, or both; the body must contain at least one of them. Every edit registers a replacement identity and resets verification, even if the values are the same: `status` becomes `pending`, and the `dns_records` are new. Mail that was already accepted is still signed with the previous identity. If the name changes and the domain has address routes, send either `preserve_local_parts: true` or `route_replacements` with one address under the new name for each route. Catch-all routes stay with the domain. Returns `limit_exceeded` if `max_dkim_keys_per_day` would be exceeded.',
  params: ItemParams,
  body: Type.Partial(Type.Object({ ...DomainFields, ...RouteFields })).properties,
  // The replacement addresses of a thousand routes take up 70 KiB.
  bodyLimitBytes: 1024 * 1024,
  refusals: ['already_exists', 'provider_not_allowed', 'address_routes_unresolved', 'limit_exceeded'],
  example: { name: 'mail.example.org', preserve_local_parts: true },
  answer: Domain,
  makesDkimKey: true,
  target: ({ tx, project, domainId, params }) => lockDomain(tx, project.id, params.id, domainId),
  async run({ tx, project, domainId, deps, domains, target: before, body }) {
    if (domainId !== null && body.name !== undefined && domainName(body.name) !== before.name) {
      throw new PosternError(
        'insufficient_scope',
        'This API key is bound to the domain and cannot rename it. Use a key that is not bound to a domain.',
      )
    }
    const { row, keysToday } = await editDomain(tx, domains, project, before, body)
    requireDkimKeys(deps.caps, keysToday)
    const activity = changeOf('domain', before, row, domainRecord)
    return { answer: domainView(row), activity, version: row.version }
  },
})
