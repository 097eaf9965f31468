import { type Selectable, sql, type UpdateObject } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'

/** An endpoint without its secret. */
export type EndpointRow = Omit<Selectable<Schema['control.endpoints']>, 'encrypted_secret'> &
  Pick<Selectable<Schema['control.endpoint_stats']>, 'last_success_at' | 'consecutive_failures'>

const columns = [
  'id',
  'project_id',
  'name',
  'url',
  'events',
  'is_active',
  'disabled_reason',
  'secret_hint',
  'secret_rotated_at',
  'version',
  'created_at',
  'updated_at',
] as const

/** An endpoint without a statistics row has had no deliveries. */
const selectEndpoints = (tx: ReadTx, projectId: number) =>
  tx
    .selectFrom('control.endpoints as endpoints')
    .leftJoin('control.endpoint_stats as stats', (join) =>
      join
        .onRef('stats.project_id', '=', 'endpoints.project_id')
        .onRef('stats.endpoint_id', '=', 'endpoints.id'),
    )
    .select([
      ...columns.map((column) => `endpoints.${column}` as const),
      'stats.last_success_at',
      sql<number>`coalesce(stats.consecutive_failures, 0)`.as('consecutive_failures'),
    ])
    .where('endpoints.project_id', '=', projectId)

export const findById = (tx: ReadTx, projectId: number, id: number): Promise<EndpointRow | undefined> =>
  selectEndpoints(tx, projectId).where('endpoints.id', '=', id).executeTakeFirst()

export const lock = (tx: Tx, projectId: number, id: number): Promise<EndpointRow | undefined> =>
  selectEndpoints(tx, projectId).where('endpoints.id', '=', id).forUpdate('endpoints').executeTakeFirst()

export function listByProject(
  tx: ReadTx,
  projectId: number,
  limit: number,
  beforeId: number | undefined,
): Promise<EndpointRow[]> {
  const newest = selectEndpoints(tx, projectId).orderBy('endpoints.id', 'desc').limit(limit)
  return (beforeId === undefined ? newest : newest.where('endpoints.id', '<', beforeId)).execute()
}

export async function takeId(tx: Tx): Promise<number> {
  const { rows } = await sql<{ id: number }>`select nextval('control.endpoints_id_seq') as id`.execute(tx)
  if (!rows[0]) throw new Error('the sequence returned no value')
  return rows[0].id
}

export interface Secret {
  encrypted_secret: Buffer
  secret_hint: string
}

type Configuration = Pick<EndpointRow, 'name' | 'url' | 'events' | 'is_active'>

export async function insert(
  tx: Tx,
  projectId: number,
  id: number,
  configuration: Configuration,
  secret: Secret,
): Promise<EndpointRow> {
  const row = await tx
    .insertInto('control.endpoints')
    .values({ id, project_id: projectId, ...configuration, ...secret })
    .returning(columns)
    .executeTakeFirstOrThrow()
  return { ...row, last_success_at: null, consecutive_failures: 0 }
}

export const updateConfiguration = (
  tx: Tx,
  before: EndpointRow,
  changes: Configuration & { disabled_reason: string | null },
): Promise<EndpointRow> => update(tx, before, changes)

export const replaceSecret = (tx: Tx, before: EndpointRow, secret: Secret): Promise<EndpointRow> =>
  update(tx, before, { ...secret, secret_rotated_at: sql<Date>`postern.now()` })

async function update(
  tx: Tx,
  before: EndpointRow,
  changes: UpdateObject<Schema, 'control.endpoints'>,
): Promise<EndpointRow> {
  const row = await tx
    .updateTable('control.endpoints')
    .set((eb) => ({
      ...changes,
      version: eb('version', '+', 1),
      updated_at: sql<Date>`postern.now()`,
    }))
    .where('project_id', '=', before.project_id)
    .where('id', '=', before.id)
    .returning(columns)
    .executeTakeFirstOrThrow()
  const { last_success_at, consecutive_failures } = before
  return { ...row, last_success_at, consecutive_failures }
}

export async function remove(tx: Tx, projectId: number, id: number): Promise<void> {
  await tx.deleteFrom('control.endpoints').where('project_id', '=', projectId).where('id', '=', id).execute()
}

export async function listRouteIds(tx: ReadTx, projectId: number, endpointId: number, limit: number) {
  const rows = await tx
    .selectFrom('control.routes')
    .select('id')
    .where('project_id', '=', projectId)
    .where('endpoint_id', '=', endpointId)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}
