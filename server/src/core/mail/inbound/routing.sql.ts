import { sql } from 'kysely'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { RouteRow } from '../../control/routes/routes.ts'

/** An address as it is looked for: in lower case, and without its tag (`+…`), if it has one. */
export interface Asked {
  domain: string
  address: string
  untagged: string
}

export interface RoutingFacts {
  /** Of control.mail_holder: 0 when several claim the name, or another project has held it; null when no project claims it. */
  holder_id: number | null
  /** Null where the project that is asked about has no such domain. */
  domain_id: number | null
  domain_name: string | null
  domain_status: string | null
  provider: string | null
  /** The living one. */
  identity_id: number | null
  project_id: number | null
  is_locked: boolean | null
  route: RouteRow | null
  is_endpoint_active: boolean | null
}

/**
 * What is known of each address at this moment, in their order: with `projectId` of that project's own domain, else of
 * the domain that mail for the name belongs to. Nothing of it is kept anywhere, so an edit counts from its commit on.
 */
export async function findRoutingFacts(
  tx: ReadTx,
  asked: readonly Asked[],
  projectId: number | null,
  domainId: number | null,
): Promise<RoutingFacts[]> {
  const { rows } = await sql<Omit<RoutingFacts, 'route'> & { route: StoredRoute | null }>`
    select holder.id as holder_id, domains.id as domain_id, domains.name as domain_name,
           domains.status as domain_status, domains.mta_provider::text as provider,
           identities.id as identity_id, domains.project_id, projects.is_locked, to_jsonb(route) as route,
           endpoints.is_active as is_endpoint_active
      from unnest(${asked.map(({ domain }) => domain)}::text[], ${asked.map(({ address }) => address)}::text[],
                  ${asked.map(({ untagged }) => untagged)}::text[])
             with ordinality as asked (name, address, untagged, no)
     cross join lateral (select control.mail_holder(asked.name) as id) as holder
      left join control.domains as domains
        on domains.name = asked.name
       and case when ${projectId}::bigint is null then domains.id = holder.id
                else domains.project_id = ${projectId}::bigint
                     and domains.id = coalesce(${domainId}::bigint, domains.id) end
      left join control.projects as projects on projects.id = domains.project_id
      left join control.identities as identities
        on identities.domain_id = domains.id and identities.retiring_at is null
      left join lateral (
        select * from control.routes as routes
         where routes.project_id = domains.project_id and routes.domain_id = domains.id and routes.is_active
           and (routes.match = 'catch_all' or routes.address in (asked.address, asked.untagged))
         order by routes.match = 'catch_all', routes.address = asked.address desc limit 1) as route on true
      left join control.endpoints as endpoints
        on endpoints.project_id = route.project_id and endpoints.id = route.endpoint_id
     order by asked.no`.execute(tx)
  return rows.map((row) => ({ ...row, route: row.route && routeRow(row.route) }))
}

/** As JSON has it. */
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
