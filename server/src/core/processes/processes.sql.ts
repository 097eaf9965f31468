import { sql } from 'kysely'
import type { OneStatement, ReadTx, Tx } from '../../platform/db/db.ts'

export const processKinds = ['api', 'worker', 'intake', 'all'] as const
export type ProcessKind = (typeof processKinds)[number]

export interface ProcessIdentity {
  id: string
  kind: ProcessKind
  host: string
  version: string
  /** The home cell. Null: the process runs on the control side, or there are no cells. */
  cell: string | null
}

export interface ProcessRow extends ProcessIdentity {
  started_at: Date
  seen_at: Date
  is_alive: boolean
}

/** A process writes its row every 15 seconds. */
const isDead = sql`seen_at < postern.now() - interval '1 minute'`

/**
 * Also deletes the rows of processes that were last seen a day ago, and of dead processes that this one replaces: those of
 * the same kind on the same host that were last seen before this one started.
 */
export async function upsertProcess(
  tx: OneStatement,
  { id, kind, host, version, cell }: ProcessIdentity,
): Promise<void> {
  await sql`
    with gone as (
      delete from postern.processes
       where id <> ${id}
         and (seen_at < postern.now() - interval '1 day'
              or (kind = ${kind} and host = ${host} and cell is not distinct from ${cell}::text and ${isDead}
                  and seen_at < coalesce((select started_at from postern.processes where id = ${id}), postern.now())))
    )
    insert into postern.processes (id, kind, host, version, cell)
    values (${id}, ${kind}, ${host}, ${version}, ${cell})
    on conflict (id) do update set seen_at = excluded.seen_at`.execute(tx)
}

export async function removeProcess(tx: Tx, id: string): Promise<void> {
  await sql`delete from postern.processes where id = ${id}`.execute(tx)
}

/** The last ones that were seen. */
export async function listProcessRows(tx: ReadTx, limit: number): Promise<ProcessRow[]> {
  const { rows } = await sql<ProcessRow>`
    select *, not (${isDead}) as is_alive from postern.processes order by seen_at desc, id limit ${limit}`.execute(
    tx,
  )
  return rows
}
