import { sql } from 'kysely'
import type { ReadTx, Tx } from './db.ts'

/** In control, by its clock. */
export async function writeHeartbeat(tx: Tx): Promise<void> {
  await sql`
    insert into control.heartbeat (at) values (postern.now())
    on conflict (id) do update set at = excluded.at`.execute(tx)
}

export interface Heartbeat {
  /** As text: microseconds count when two of them are compared. */
  at: string
  /** Since then, by the clock of the server that is asked. */
  age_seconds: number
}

/** Undefined: none was written, or none has been copied here. */
export async function findHeartbeat(tx: ReadTx): Promise<Heartbeat | undefined> {
  const { rows } = await sql<Heartbeat>`
    select at::text, extract(epoch from postern.now() - at)::float8 as age_seconds
      from control.heartbeat`.execute(tx)
  return rows[0]
}
