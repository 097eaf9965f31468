import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { RouteRow } from '../../control/routes/routes.ts'

/** An address to look up, in lower case, and the same address without its subaddress (`+…`) if it has one. */
export interface AddressLookup {
  domain: string
  address: string
  untagged: string
}

export interface RoutingFacts {
  /**
   * The result of control.mail_holder: 0 if several projects claim the name or another project has held it;
   * null if no project claims it.
   */
  holder_id: number | null
  /** Null if the queried project does not have the domain. */
  domain_id: number | null
  domain_name: string | null
  domain_status: string | null
  provider: string | null
  /** The current identity. */
  identity_id: number | null
  project_id: number | null
  is_locked: boolean | null
  route: RouteRow | null
  is_endpoint_active: boolean | null
}

/**
 * Returns the data that determines the routing of each address, in the order of the addresses. With
 * `projectId`, the project's own domain is used, otherwise the domain that holds the name. Nothing is cached,
 * so a change takes effect when it is committed.
 */
export async function findRoutingFacts(
  tx: ReadTx,
  requested: readonly AddressLookup[],
  projectId: number | null,
  domainId: number | null,
): Promise<RoutingFacts[]> {
  const { rows } = await sql<Omit<RoutingFacts, 'route'> & { route: StoredRoute | null }>`
    select holder.id as holder_id, domains.id as domain_id, domains.name as domain_name,
           domains.status as domain_status, domains.mta_provider::text as provider,
           identities.id as identity_id, domains.project_id, projects.is_locked, to_jsonb(route) as route,
           endpoints.is_active as is_endpoint_active
      from unnest(${requested.map(({ domain }) => domain)}::text[], ${requested.map(({ address }) => address)}::text[],
                  ${requested.map(({ untagged }) => untagged)}::text[])
             with ordinality as requested (name, address, untagged, no)
     cross join lateral (select control.mail_holder(requested.name) as id) as holder
      left join control.domains as domains
        on domains.name = requested.name
       and case when ${projectId}::bigint is null then domains.id = holder.id
                else domains.project_id = ${projectId}::bigint
                     and domains.id = coalesce(${domainId}::bigint, domains.id) end
      left join control.projects as projects on projects.id = domains.project_id
      left join control.identities as identities
        on identities.domain_id = domains.id and identities.retiring_at is null
      left join lateral (
        select * from control.routes as routes
         where routes.project_id = domains.project_id and routes.domain_id = domains.id and routes.is_active
           and (routes.match = 'catch_all' or routes.address in (requested.address, requested.untagged))
         order by routes.match = 'catch_all', routes.address = requested.address desc limit 1) as route on true
      left join control.endpoints as endpoints
        on endpoints.project_id = route.project_id and endpoints.id = route.endpoint_id
     order by requested.no`.execute(tx)
  return rows.map((row) => ({ ...row, route: row.route && routeRow(row.route) }))
}

/** As decoded from JSON. */
type StoredRoute = Omit<RouteRow, 'created_at' | 'updated_at' | 'forward_confirmed_at'> & {
  created_at: string
  updated_at: string
  forward_confirmed_at: string | null
}

const routeRow = (route: StoredRoute): RouteRow => ({
  ...route,
  created_at: new Date(route.created_at),
  updated_at: new Date(route.updated_at),
  forward_confirmed_at: route.forward_confirmed_at === null ? null : new Date(route.forward_confirmed_at),
})
