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
    'Gives a domain another `name`, another `mta_provider`, or both; a body with neither is refused. Every edit registers a replacement identity and resets verification, equal values included: `status` is `pending`, and the `dns_records` are new. Mail already accepted is still signed with the identity before it. When the name changes and the domain has address routes, say either `preserve_local_parts: true` or give `route_replacements` with one address under the new name for each of them; catch-all routes follow the domain. Refused with `limit_exceeded` beyond `max_dkim_keys_per_day`.',
  params: ItemParams,
  body: Type.Partial(Type.Object({ ...DomainFields, ...RouteFields })).properties,
  // A thousand address routes are 70 KiB.
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
        'This API key is bound to the domain, and cannot rename it. Use a key that is bound to none.',
      )
    }
    const { row, keysToday } = await editDomain(tx, domains, project, before, body)
    requireDkimKeys(deps.caps, keysToday)
    const activity = changeOf('domain', before, row, domainRecord)
    return { answer: domainView(row), activity, version: row.version }
  },
})
