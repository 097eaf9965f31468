import { sql } from 'kysely'
import type { Tx } from '../../../platform/db/db.ts'
import type { Claimed } from './claims.sql.ts'

/**
 * Inserts attempts with outcome `begun` for claims whose leases are valid for at least another
 * `withinSeconds`. Returns the indexes of those claims.
 */
export async function insertStarted(
  tx: Tx,
  claims: readonly Claimed[],
  withinSeconds: readonly number[],
): Promise<number[]> {
  const each = <T>(value: (claimed: Claimed) => T): T[] => claims.map(value)
  const { rows } = await sql<{ ordinal: number }>`
    with claim as materialized (
      select * from unnest(
        ${each(({ shard }) => shard)}::smallint[], ${each(({ message_id }) => message_id)}::uuid[],
        ${each(({ recipient_no }) => recipient_no)}::smallint[], ${each(({ attempt }) => attempt)}::integer[],
        ${each(({ claimed_at }) => claimed_at)}::timestamptz[], ${withinSeconds}::float8[])
        with ordinality as claim (shard, message_id, recipient_no, attempt, started_at, within_seconds, ordinal)
    ), owned as materialized (
      select claim.*, dispatch.project_id, dispatch.provider from claim
        cross join lateral (
          select project_id, provider from mail.dispatch as dispatch
           where dispatch.shard = claim.shard and dispatch.message_id = claim.message_id
             and dispatch.recipient_no = claim.recipient_no
             and dispatch.attempt = claim.attempt and dispatch.state = 'leased'
             and dispatch.leased_until > postern.now() + claim.within_seconds * interval '1 second'
             for update) as dispatch
    ), started as (
      insert into mail.attempts (message_id, recipient_no, attempt, project_id, provider, outcome, started_at)
      select message_id, recipient_no, attempt, project_id, provider, 'begun', started_at from owned
      on conflict do nothing
      returning message_id, recipient_no
    )
    select owned.ordinal::int as ordinal from owned join started using (message_id, recipient_no)`.execute(tx)
  return rows.map(({ ordinal }) => ordinal - 1)
}
