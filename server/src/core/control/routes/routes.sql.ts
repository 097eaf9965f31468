import { type Selectable, sql } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'
import type { RouteConfig } from './wire.ts'

export type RouteRow = Selectable<Schema['control.routes']>

const columns = [
  'id',
  'project_id',
  'domain_id',
  'match',
  'address',
  'action',
  'endpoint_id',
  'forward_to',
  'forward_confirmed_at',
  'is_active',
  'version',
  'created_at',
  'updated_at',
] as const

const selectRoutes = (tx: ReadTx, projectId: number, domainId: number | null = null) =>
  tx
    .selectFrom('control.routes')
    .select(columns)
    .where('project_id', '=', projectId)
    .$if(domainId !== null, (all) => all.where('domain_id', '=', domainId as number))

export const findById = (
  tx: ReadTx,
  projectId: number,
  id: number,
  domainId: number | null,
): Promise<RouteRow | undefined> =>
  selectRoutes(tx, projectId, domainId).where('id', '=', id).executeTakeFirst()

export const lock = (
  tx: Tx,
  projectId: number,
  id: number,
  domainId: number | null,
): Promise<RouteRow | undefined> =>
  selectRoutes(tx, projectId, domainId).where('id', '=', id).forUpdate().executeTakeFirst()

export function listByProject(
  tx: ReadTx,
  projectId: number,
  limit: number,
  beforeId: number | undefined,
  domainId: number | null,
): Promise<RouteRow[]> {
  const newest = selectRoutes(tx, projectId, domainId).orderBy('id', 'desc').limit(limit)
  return (beforeId === undefined ? newest : newest.where('id', '<', beforeId)).execute()
}

/** The route for this address, or the catch-all route if the address is null. There is at most one. */
export function findByMatch(
  tx: ReadTx,
  projectId: number,
  domainId: number,
  address: string | null,
): Promise<RouteRow | undefined> {
  const ofDomain = selectRoutes(tx, projectId).where('domain_id', '=', domainId)
  const wanted =
    address === null
      ? ofDomain.where('match', '=', 'catch_all')
      : ofDomain.where('match', '=', 'address').where('address', '=', address)
  return wanted.executeTakeFirst()
}

export async function countActiveAddressRoutes(
  tx: ReadTx,
  projectId: number,
  domainId: number,
): Promise<number> {
  const { routes } = await tx
    .selectFrom('control.routes')
    .select((eb) => eb.fn.countAll<number>().as('routes'))
    .where('project_id', '=', projectId)
    .where('domain_id', '=', domainId)
    .where('match', '=', 'address')
    .where('is_active', '=', true)
    .executeTakeFirstOrThrow()
  return routes
}

export const insert = (tx: Tx, projectId: number, configuration: RouteConfig): Promise<RouteRow> =>
  tx
    .insertInto('control.routes')
    .values({ project_id: projectId, ...configuration })
    .returning(columns)
    .executeTakeFirstOrThrow()

export const update = (tx: Tx, { project_id, id }: RouteRow, configuration: RouteConfig): Promise<RouteRow> =>
  tx
    .updateTable('control.routes')
    .set((eb) => ({
      ...configuration,
      version: eb('version', '+', 1),
      updated_at: sql<Date>`postern.now()`,
    }))
    .where('project_id', '=', project_id)
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow()

export async function remove(tx: Tx, { project_id, id }: RouteRow): Promise<void> {
  await tx.deleteFrom('control.routes').where('project_id', '=', project_id).where('id', '=', id).execute()
}

export interface RoutedDomain {
  id: number
  name: string
  status: string
  /** Whether the domain's MX record was found. */
  has_mx: boolean
}

/** Does not include the MX status. Locks the domain against renaming and deletion until the transaction ends. */
export const shareDomain = (
  tx: Tx,
  projectId: number,
  id: number,
): Promise<Pick<RoutedDomain, 'id' | 'name'> | undefined> =>
  tx
    .selectFrom('control.domains')
    .select(['id', 'name'])
    .where('project_id', '=', projectId)
    .where('id', '=', id)
    .forShare()
    .executeTakeFirst()

const selectDomains = (tx: ReadTx, projectId: number) =>
  tx
    .selectFrom('control.domains as domains')
    .select((eb) => [
      'domains.id',
      'domains.name',
      'domains.status',
      eb
        .exists(
          eb
            .selectFrom('control.dns_records as records')
            .select('records.id')
            .whereRef('records.project_id', '=', 'domains.project_id')
            .whereRef('records.domain_id', '=', 'domains.id')
            .where('records.purpose', '=', 'mx')
            .where('records.status', '=', 'verified'),
        )
        .$castTo<boolean>()
        .as('has_mx'),
    ])
    .where('domains.project_id', '=', projectId)

export const findRoutedDomain = (
  tx: ReadTx,
  projectId: number,
  id: number,
): Promise<RoutedDomain | undefined> =>
  selectDomains(tx, projectId).where('domains.id', '=', id).executeTakeFirst()

export const findRoutedDomainByName = (
  tx: ReadTx,
  projectId: number,
  name: string,
): Promise<RoutedDomain | undefined> =>
  selectDomains(tx, projectId).where('domains.name', '=', name).executeTakeFirst()

export interface RoutedEndpoint {
  id: number
  name: string
  is_active: boolean
}

const selectEndpoint = (tx: ReadTx, projectId: number, id: number) =>
  tx
    .selectFrom('control.endpoints')
    .select(['id', 'name', 'is_active'])
    .where('project_id', '=', projectId)
    .where('id', '=', id)

export const findEndpoint = (
  tx: ReadTx,
  projectId: number,
  id: number,
): Promise<RoutedEndpoint | undefined> => selectEndpoint(tx, projectId, id).executeTakeFirst()

/** Locks the endpoint, because a concurrent deletion locks only the endpoint and not the project. */
export const shareEndpoint = (tx: Tx, projectId: number, id: number): Promise<RoutedEndpoint | undefined> =>
  selectEndpoint(tx, projectId, id).forKeyShare().executeTakeFirst()
