import { sql } from 'kysely'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'

export async function takeId(tx: Tx): Promise<number> {
  const { rows } = await sql<{ id: number }>`select nextval('control.dkim_keys_id_seq') as id`.execute(tx)
  if (!rows[0]) throw new Error('the sequence returned no value')
  return rows[0].id
}

export async function insertKey(
  tx: Tx,
  projectId: number,
  identityId: number,
  { id, selector, publicKey }: { id: number; selector: string; publicKey: string },
  sealed: Buffer,
): Promise<void> {
  await tx
    .insertInto('control.dkim_keys')
    .values({
      id,
      project_id: projectId,
      identity_id: identityId,
      selector,
      public_key: publicKey,
      encrypted_private_key: sealed,
    })
    .execute()
}

/** Returns the selector of the deleted key, if there was one. */
export async function dropPending(
  tx: Tx,
  projectId: number,
  identityId: number,
): Promise<string | undefined> {
  const dropped = await tx
    .deleteFrom('control.dkim_keys')
    .where('project_id', '=', projectId)
    .where('identity_id', '=', identityId)
    .where('state', '=', 'pending')
    .returning('selector')
    .executeTakeFirst()
  return dropped?.selector
}

export interface DkimKeyRow {
  id: number
  selector: string
  state: string
}

/** The keys that are not retired. */
export const listKeys = (tx: ReadTx, projectId: number, identityId: number): Promise<DkimKeyRow[]> =>
  tx
    .selectFrom('control.dkim_keys')
    .select(['id', 'selector', 'state'])
    .where('project_id', '=', projectId)
    .where('identity_id', '=', identityId)
    .where('state', '<>', 'retired')
    .execute()

export async function retireActive(tx: Tx, projectId: number, identityId: number): Promise<void> {
  await tx
    .updateTable('control.dkim_keys')
    .set({ state: 'retired', encrypted_private_key: null, retired_at: sql<Date>`postern.now()` })
    .where('project_id', '=', projectId)
    .where('identity_id', '=', identityId)
    .where('state', '=', 'active')
    .execute()
}

export async function activatePending(tx: Tx, projectId: number, identityId: number): Promise<void> {
  await tx
    .updateTable('control.dkim_keys')
    .set({ state: 'active', activated_at: sql<Date>`postern.now()` })
    .where('project_id', '=', projectId)
    .where('identity_id', '=', identityId)
    .where('state', '=', 'pending')
    .execute()
}

/** An identity that is not retired, with its active key, if any. */
export const findActiveKey = (tx: ReadTx, projectId: number, identityId: number) =>
  tx
    .selectFrom('control.identities as identities')
    .leftJoin('control.dkim_keys as keys', (join) =>
      join.onRef('keys.identity_id', '=', 'identities.id').on('keys.state', '=', 'active'),
    )
    .select([
      'identities.name',
      'identities.provider',
      'keys.id as key_id',
      'keys.selector',
      'keys.encrypted_private_key',
    ])
    .where('identities.project_id', '=', projectId)
    .where('identities.id', '=', identityId)
    .where('identities.state', '<>', 'retired')
    .executeTakeFirst()

const today = sql`(postern.now() at time zone 'UTC')::date`

/** Counts one more key and returns how many the project has created today (UTC). */
export async function countKey(tx: Tx, projectId: number): Promise<number> {
  const { rows } = await sql<{ keys_made: number }>`
    insert into control.dkim_usage as usage (project_id, day, keys_made) values (${projectId}, ${today}, 1)
    on conflict (project_id) do update
      set keys_made = case when usage.day = excluded.day then usage.keys_made + 1 else 1 end, day = excluded.day
    returning keys_made`.execute(tx)
  return rows[0]?.keys_made ?? 0
}

export async function findKeyCount(tx: ReadTx, projectId: number): Promise<number> {
  const { rows } = await sql<{ keys_made: number }>`
    select keys_made from control.dkim_usage where project_id = ${projectId} and day = ${today}`.execute(tx)
  return rows[0]?.keys_made ?? 0
}
