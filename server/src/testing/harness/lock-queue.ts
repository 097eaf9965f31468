import pg from 'pg'
import type { TestDatabase } from './database.ts'
import { eventually } from './waiting.ts'

/**
 * Runs the statement in a transaction that commits only once the request is blocked by the transaction's locks. The
 * request then continues with a mix of data read before the commit and data committed since. `meanwhile` runs while the
 * request is blocked.
 */
export async function holdingBack<Answer>(
  database: TestDatabase,
  statement: string,
  request: () => Promise<Answer>,
  meanwhile: () => Promise<void> = async () => {},
): Promise<Answer> {
  const holder = new pg.Client({ connectionString: database.superuserUrl })
  await holder.connect()
  try {
    const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid')
    await holder.query('begin')
    await holder.query(statement)
    const answer = request()
    await blockedBy(database, rows[0]?.pid ?? 0)
    await meanwhile()
    await holder.query('commit')
    return await answer
  } finally {
    await holder.end()
  }
}

/** Resolves when a session is blocked by the session with this process id. */
export async function blockedBy(database: TestDatabase, pid: number): Promise<void> {
  const isBlocked = async (): Promise<boolean> => {
    const waiting = await database.query(
      `select from pg_stat_activity where datname = current_database() and $1 = any (pg_blocking_pids(pid))`,
      [pid],
    )
    return waiting.length > 0
  }
  await eventually('a session waits for the lock', isBlocked, { everyMs: 5 })
}
