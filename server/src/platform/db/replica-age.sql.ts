import { sql } from 'kysely'
import type { ReadTx, Tx } from './db.ts'

/** Writes the heartbeat to the control database, using that server's clock. */
export async function writeHeartbeat(tx: Tx): Promise<void> {
  await sql`
    insert into control.heartbeat (at) values (postern.now())
    on conflict (id) do update set at = excluded.at`.execute(tx)
}

export interface Heartbeat {
  /** As text, because heartbeats are compared to the microsecond. */
  at: string
  /** According to the queried server's clock. */
  age_seconds: number
}

/** Undefined if no heartbeat was written or replicated yet. */
export async function findHeartbeat(tx: ReadTx): Promise<Heartbeat | undefined> {
  const { rows } = await sql<Heartbeat>`
    select at::text, extract(epoch from postern.now() - at)::float8 as age_seconds
      from control.heartbeat`.execute(tx)
  return rows[0]
}
