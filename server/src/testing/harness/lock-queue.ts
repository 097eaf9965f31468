import pg from 'pg'
import type { TestDatabase } from './database.ts'
import { eventually } from './waiting.ts'

/**
 * Two changes that meet: the statement runs in a transaction that commits only once the request waits for its
 * locks. What the request then does, it does with what it read before and what was committed since. `meanwhile`
 * runs while the request waits.
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

/** Resolves once a session waits for a lock that the session with this process id holds. */
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
