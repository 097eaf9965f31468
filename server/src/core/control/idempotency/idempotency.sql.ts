import { sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'

export interface IdempotencyScope {
  actor: string
  /** Null for administrators, whose keys do not belong to a project. */
  projectId: number | null
  operation: string
  key: string
}

export interface StoredResponse {
  status: number
  location: string | null
  etag: string | null
  /** Stored as text, so a replay is byte-identical. Null if the response contained a secret or has no body (204). */
  body: string | null
}

/** Returns false if another transaction holds the lock. The lock is released when the transaction ends. */
export async function tryLock(
  tx: Tx,
  { actor, projectId, operation, key }: IdempotencyScope,
): Promise<boolean> {
  const name = JSON.stringify(['idempotency', projectId, actor, operation, key])
  const { rows } = await sql<{ locked: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(${name}, 0)) as locked`.execute(tx)
  return rows[0]?.locked ?? false
}

export function find(tx: ReadTx, { actor, projectId, operation, key }: IdempotencyScope) {
  return tx
    .selectFrom('control.idempotency')
    .select(['request_hash', 'status', 'location', 'etag', sql<string | null>`body::text`.as('body')])
    .where('project_id', projectId === null ? 'is' : '=', projectId)
    .where('actor', '=', actor)
    .where('operation', '=', operation)
    .where('key', '=', key)
    .where('expires_at', '>', sql<Date>`postern.now()`)
    .executeTakeFirst()
}

export async function insert(
  tx: Tx,
  { actor, projectId, operation, key }: IdempotencyScope,
  requestHash: Buffer,
  { status, location, etag, body }: StoredResponse,
): Promise<void> {
  // Only an expired row can conflict: `find` has checked for a valid one under the lock.
  await sql`
    insert into control.idempotency
      (project_id, actor, operation, key, request_hash, status, location, etag, body, expires_at)
    values (${projectId}, ${actor}, ${operation}, ${key}, ${requestHash}, ${status}, ${location}, ${etag}, ${body},
            postern.now() + interval '24 hours')
    on conflict (project_id, actor, operation, key) do update
      set request_hash = excluded.request_hash, status = excluded.status, location = excluded.location,
          etag = excluded.etag, body = excluded.body, created_at = postern.now(), expires_at = excluded.expires_at`.execute(
    tx,
  )
}

export async function deleteExpired(tx: OneStatement, atMost: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from control.idempotency where ctid = any(array(
      select ctid from control.idempotency where expires_at <= postern.now() order by expires_at limit ${atMost}))
       and expires_at <= postern.now()`.execute(tx)
  return Number(numAffectedRows ?? 0n)
}
