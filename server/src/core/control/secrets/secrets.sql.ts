import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import type { WrappedKey } from './master-keys.ts'

export function findProjectKey(tx: ReadTx, projectId: number): Promise<WrappedKey | undefined> {
  return tx
    .selectFrom('control.project_keys')
    .select(['master_key_id', 'wrapped_key'])
    .where('project_id', '=', projectId)
    .executeTakeFirst()
}

export async function findProjectKeys(
  tx: ReadTx,
  projectIds: readonly number[],
): Promise<Map<number, WrappedKey>> {
  const rows = await tx
    .selectFrom('control.project_keys')
    .select(['project_id', 'master_key_id', 'wrapped_key'])
    // As an array, so that the text does not depend on the number of projects and can be prepared.
    .where(sql<boolean>`project_id = any(${projectIds}::bigint[])`)
    .execute()
  return new Map(rows.map((row) => [row.project_id, row]))
}

/** Waits for a concurrent transaction that inserts the same project's key. Does nothing if that transaction commits. */
export async function insertProjectKey(tx: Tx, projectId: number, key: WrappedKey): Promise<void> {
  await tx
    .insertInto('control.project_keys')
    .values({ project_id: projectId, ...key })
    .onConflict((conflict) => conflict.column('project_id').doNothing())
    .execute()
}

/** The next project keys, in order of project id, that are wrapped by another master key. */
export function lockKeysNotUnder(tx: Tx, masterKeyId: string, afterProjectId: number, limit: number) {
  return tx
    .selectFrom('control.project_keys')
    .select(['project_id', 'master_key_id', 'wrapped_key'])
    .where('master_key_id', '<>', masterKeyId)
    .where('project_id', '>', afterProjectId)
    .orderBy('project_id')
    .limit(limit)
    .forUpdate()
    .execute()
}

export async function replaceWrappedKeys(
  tx: Tx,
  masterKeyId: string,
  keys: { projectId: number; wrappedKey: Buffer }[],
): Promise<void> {
  const projectIds = keys.map(({ projectId }) => projectId)
  const wrappedKeys = keys.map(({ wrappedKey }) => wrappedKey)
  await sql`
    update control.project_keys as keys
       set master_key_id = ${masterKeyId},
           wrapped_key = rewrapped.wrapped_key,
           version = keys.version + 1,
           updated_at = postern.now()
      from unnest(${projectIds}::bigint[], ${wrappedKeys}::bytea[]) as rewrapped (project_id, wrapped_key)
     where keys.project_id = rewrapped.project_id
  `.execute(tx)
}

/** How many project keys each master key wraps, with one of them as a sample to unwrap. */
export async function countByMasterKey(tx: ReadTx) {
  const { rows } = await sql<WrappedKey & { keys: number; project_id: number }>`
    select counted.master_key_id, counted.keys, sample.project_id, sample.wrapped_key
      from (select master_key_id, count(*) as keys, min(project_id) as project_id
              from control.project_keys
             group by master_key_id) as counted
      join control.project_keys as sample using (project_id)
     order by counted.master_key_id
  `.execute(tx)
  return rows
}
