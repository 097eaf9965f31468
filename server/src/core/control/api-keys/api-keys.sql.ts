import { type Selectable, sql, type UpdateObject } from 'kysely'
import type { ReadTx, Schema, Tx } from '../../../platform/db/db.ts'

/** An API key without the hash of its secret. */
export type ApiKeyRow = Omit<
  Selectable<Schema['control.api_keys']>,
  'secret_hash' | 'created_by_type' | 'created_by_id'
> &
  Pick<Selectable<Schema['control.api_key_stats']>, 'last_used_at'>

const columns = [
  'id',
  'project_id',
  'name',
  'is_test',
  'prefix',
  'scopes',
  'domain_id',
  'allowed_ips',
  'expires_at',
  'is_active',
  'version',
  'created_at',
  'updated_at',
] as const

/** A key without a statistics row has never been used. */
const selectKeys = (tx: ReadTx) =>
  tx
    .selectFrom('control.api_keys as keys')
    .leftJoin('control.api_key_stats as stats', (join) =>
      join.onRef('stats.project_id', '=', 'keys.project_id').onRef('stats.api_key_id', '=', 'keys.id'),
    )
    .select([...columns.map((column) => `keys.${column}` as const), 'stats.last_used_at'])

const selectOfProject = (tx: ReadTx, projectId: number) =>
  selectKeys(tx).where('keys.project_id', '=', projectId)

export const findById = (tx: ReadTx, projectId: number, id: number): Promise<ApiKeyRow | undefined> =>
  selectOfProject(tx, projectId).where('keys.id', '=', id).executeTakeFirst()

/** Does not block `recordUse`, which inserts a row that references the key. */
export const lock = (tx: Tx, projectId: number, id: number): Promise<ApiKeyRow | undefined> =>
  selectOfProject(tx, projectId).where('keys.id', '=', id).forNoKeyUpdate('keys').executeTakeFirst()

export function listByProject(
  tx: ReadTx,
  projectId: number,
  limit: number,
  beforeId: number | undefined,
): Promise<ApiKeyRow[]> {
  const newest = selectOfProject(tx, projectId).orderBy('keys.id', 'desc').limit(limit)
  return (beforeId === undefined ? newest : newest.where('keys.id', '<', beforeId)).execute()
}

export interface StoredSecret {
  prefix: string
  secret_hash: Buffer
}

/** The creator of a key. A key cannot create keys. */
export interface KeyCreator {
  type: 'user' | 'administrator'
  id: number
}

export type Configuration = Pick<
  ApiKeyRow,
  'name' | 'scopes' | 'domain_id' | 'allowed_ips' | 'expires_at' | 'is_active'
>

export async function insert(
  tx: Tx,
  projectId: number,
  isTest: boolean,
  configuration: Configuration,
  secret: StoredSecret,
  createdBy: KeyCreator,
): Promise<ApiKeyRow> {
  const creator = { created_by_type: createdBy.type, created_by_id: createdBy.id }
  const row = await tx
    .insertInto('control.api_keys')
    .values({ project_id: projectId, is_test: isTest, ...configuration, ...secret, ...creator })
    .returning(columns)
    .executeTakeFirstOrThrow()
  return { ...row, last_used_at: null }
}

export const updateConfiguration = (
  tx: Tx,
  before: ApiKeyRow,
  configuration: Configuration,
): Promise<ApiKeyRow> => update(tx, before, configuration)

export const replaceSecret = (tx: Tx, before: ApiKeyRow, secret: StoredSecret): Promise<ApiKeyRow> =>
  update(tx, before, secret)

async function update(
  tx: Tx,
  { project_id, id, last_used_at }: ApiKeyRow,
  changes: UpdateObject<Schema, 'control.api_keys'>,
): Promise<ApiKeyRow> {
  const row = await tx
    .updateTable('control.api_keys')
    .set((eb) => ({ ...changes, version: eb('version', '+', 1), updated_at: sql<Date>`postern.now()` }))
    .where('project_id', '=', project_id)
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow()
  return { ...row, last_used_at }
}

export async function remove(tx: Tx, { project_id, id }: ApiKeyRow): Promise<void> {
  await tx.deleteFrom('control.api_keys').where('project_id', '=', project_id).where('id', '=', id).execute()
}

export async function isFuture(tx: ReadTx, time: Date): Promise<boolean> {
  const { rows } = await sql<{ is_future: boolean }>`
    select ${time}::timestamptz > postern.now() as is_future`.execute(tx)
  return rows[0]?.is_future === true
}

export interface BoundDomain {
  id: number
  name: string
  status: string
}

/** Locks the domain against deletion until the transaction ends. */
export const shareDomain = (tx: Tx, projectId: number, id: number): Promise<BoundDomain | undefined> =>
  selectDomain(tx, projectId, id).forKeyShare().executeTakeFirst()

export const findDomain = (tx: ReadTx, projectId: number, id: number): Promise<BoundDomain | undefined> =>
  selectDomain(tx, projectId, id).executeTakeFirst()

const selectDomain = (tx: ReadTx, projectId: number, id: number) =>
  tx
    .selectFrom('control.domains')
    .select(['id', 'name', 'status'])
    .where('project_id', '=', projectId)
    .where('id', '=', id)

/** Active keys that have not expired. */
const selectActive = (tx: ReadTx) =>
  selectKeys(tx)
    .where('keys.is_active', '=', true)
    .where((eb) =>
      eb.or([eb('keys.expires_at', 'is', null), eb('keys.expires_at', '>', sql<Date>`postern.now()`)]),
    )

/**
 * The keys with these hashes, by hexadecimal hash. The only lookup without a project id, because the secret identifies the
 * project.
 */
export async function findActive(
  tx: ReadTx,
  secretHashes: readonly Buffer[],
): Promise<Map<string, ApiKeyRow>> {
  const rows = await selectActive(tx)
    .select('keys.secret_hash')
    .where('keys.secret_hash', '=', sql<Buffer>`any(${secretHashes}::bytea[])`)
    .execute()
  return new Map(rows.map(({ secret_hash, ...key }) => [secret_hash.toString('hex'), key]))
}

export const findActiveById = (tx: ReadTx, projectId: number, id: number): Promise<ApiKeyRow | undefined> =>
  selectActive(tx).where('keys.project_id', '=', projectId).where('keys.id', '=', id).executeTakeFirst()

/**
 * Writes and locks nothing if the last use was recorded less than a minute ago. The foreign key takes `for key share`
 * anyway. With the explicit lock, a key that is being deleted yields no row instead of a foreign key violation.
 */
export async function recordUse(tx: Tx, projectId: number, id: number): Promise<void> {
  await sql`
    insert into control.api_key_stats as stats (api_key_id, project_id, last_used_at)
    select keys.id, keys.project_id, postern.now() from control.api_keys as keys
     where keys.project_id = ${projectId} and keys.id = ${id}
       and not exists (
         select from control.api_key_stats as known
          where known.api_key_id = keys.id and known.last_used_at > postern.now() - interval '1 minute')
       for key share of keys
    on conflict (api_key_id) do update set last_used_at = excluded.last_used_at
     where stats.last_used_at is null or stats.last_used_at <= excluded.last_used_at - interval '1 minute'`.execute(
    tx,
  )
}
