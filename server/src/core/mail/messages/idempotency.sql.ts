import { sql } from 'kysely'
import type { OneStatement, Tx } from '../../../platform/db/db.ts'

export interface KeyScope {
  projectId: number
  actor: string
  operation: string
  key: string
}

const unnested = (scopes: readonly KeyScope[]) => sql`
  unnest(${scopes.map(({ projectId }) => projectId)}::bigint[], ${scopes.map(({ actor }) => actor)}::text[],
         ${scopes.map(({ operation }) => operation)}::text[], ${scopes.map(({ key }) => key)}::text[])
    with ordinality as requested (project_id, actor, operation, key, ordinal)`

/**
 * Tries to take an advisory lock on each key, held until the transaction ends. False if another transaction
 * holds the lock.
 */
export async function claimKeys(tx: Tx, scopes: readonly KeyScope[]): Promise<boolean[]> {
  const { rows } = await sql<{ is_free: boolean }>`
    select pg_try_advisory_xact_lock(
             hashtextextended(json_build_array('mail', project_id, actor, operation, key)::text, 0)) as is_free
      from (select * from ${unnested(scopes)} order by ordinal) as requested`.execute(tx)
  return rows.map(({ is_free }) => is_free)
}

export interface StoredAnswer {
  request_hash: Buffer
  status: number
  body: string
}

/** In the order of `scopes`. */
export async function findAnswers(
  tx: Tx,
  scopes: readonly KeyScope[],
): Promise<(StoredAnswer | undefined)[]> {
  const { rows } = await sql<StoredAnswer & { ordinal: number }>`
    select ordinal::int, stored.request_hash, stored.status, stored.body::text as body
      from ${unnested(scopes)}
      join mail.idempotency as stored
        on stored.shard = postern.shard_of(requested.project_id) and stored.project_id = requested.project_id
       and stored.actor = requested.actor and stored.operation = requested.operation and stored.key = requested.key
     where stored.expires_at > postern.now()`.execute(tx)
  const byOrdinal = new Map(rows.map((row) => [row.ordinal, row]))
  return scopes.map((_scope, index) => byOrdinal.get(index + 1))
}

export async function insertAnswers(
  tx: Tx,
  answers: readonly (KeyScope & { requestHash: Buffer; status: number; body: string })[],
): Promise<void> {
  // Only an expired row can conflict: `findAnswers` found no valid one under the lock.
  await sql`
    insert into mail.idempotency (project_id, actor, operation, key, request_hash, status, body, expires_at)
    select project_id, actor, operation, key, request_hash, status, body::json, postern.now() + interval '24 hours'
      from ${unnested(answers)}
      join unnest(${answers.map(({ requestHash }) => requestHash)}::bytea[],
                  ${answers.map(({ status }) => status)}::smallint[], ${answers.map(({ body }) => body)}::text[])
             with ordinality as answer (request_hash, status, body, ordinal) using (ordinal)
        on conflict (shard, project_id, actor, operation, key) do update
       set request_hash = excluded.request_hash, status = excluded.status, body = excluded.body,
           created_at = postern.now(), expires_at = excluded.expires_at`.execute(tx)
}

export async function deleteExpiredAnswers(tx: OneStatement, atMost: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from mail.idempotency where ctid = any(array(
      select ctid from mail.idempotency where expires_at <= postern.now() order by expires_at limit ${atMost}))
       and expires_at <= postern.now()`.execute(tx)
  return Number(numAffectedRows ?? 0n)
}
