import Type from 'typebox'
import { domainView, editDomain, lockDomain } from '../../core/domains/domains.ts'
import { Domain, DomainFields, RouteFields } from '../../core/domains/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { customerOperation } from '../operation.ts'

export const editDomainOperation = customerOperation({
  id: 'domains.edit',
  kind: 'edit',
  path: '/projects/:project_id/domains/:id',
  summary: 'Edit a domain',
  description:
    'Gives a domain another `name`, another `mta_provider`, or both; a body with neither is refused. Every edit registers a replacement identity and resets verification, equal values included: `status` is `pending`, and the `dns_records` are new. Mail already accepted is still signed with the identity before it. When the name changes and the domain has address routes, say either `preserve_local_parts: true` or give `route_replacements` with one address under the new name for each of them; catch-all routes follow the domain.',
  params: ItemParams,
  body: Type.Partial(Type.Object({ ...DomainFields, ...RouteFields })).properties,
  // A thousand address routes are 70 KiB.
  bodyLimitBytes: 1024 * 1024,
  refusals: ['already_exists', 'provider_not_allowed', 'address_routes_unresolved'],
  example: { name: 'mail.example.org', preserve_local_parts: true },
  answer: Domain,
  makesDkimKey: true,
  target: ({ tx, project, params }) => lockDomain(tx, project.id, params.id),
  async run({ tx, project, domains, target: before, body }) {
    const { row } = await editDomain(tx, domains, project, before, body)
    return { answer: domainView(row), version: row.version }
  },
})
