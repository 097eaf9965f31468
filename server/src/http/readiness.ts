import type { Context } from '../context/context.ts'
import { pendingMigrations } from '../platform/db/migrate.ts'
import { PosternError } from '../platform/errors.ts'

/** `replica` is set if sending is paused in this process's cell. */
export interface Readiness {
  status: 'ready'
  replica?: 'stale'
}

/**
 * Checks whether the process can do its work. If not, rejects with an error that says why.
 *
 * An outdated replica of the control database is reported but does not make a process unready. Inbound mail and
 * reports must still be received, and if the control database is down, every cell is in this state: the load balancer
 * would have no process left.
 */
export async function requireReady(
  { config, db, home, replicas, log, jobs }: Context,
  { needsJobs }: { needsJobs: boolean },
): Promise<Readiness> {
  // In a cell, mail is accepted even if the control database does not respond.
  const pending = await (home?.admin ?? db.admin).read(pendingMigrations).catch((error: unknown) => {
    log.error({ err: error }, 'not ready: the database is unavailable')
    throw new PosternError(
      'unavailable',
      'The database is unavailable. Check that it is running and that `postern migrate` was run.',
    )
  })
  if (pending.length > 0) {
    throw new PosternError('unavailable', 'Database migrations are pending. Run `postern migrate`.')
  }
  if (needsJobs && !jobs.isReady && config.cell === undefined) {
    throw new PosternError(
      'unavailable',
      'The job queue is unavailable. Check that `postern migrate` was run.',
    )
  }
  const replica = home && replicas.get(home)
  return { status: 'ready', ...((await replica?.isStale()) && { replica: 'stale' }) }
}

/** How long a result is cached. Load balancers check once per second or less often. */
const cacheMs = 1_000

/**
 * Runs the check at most once per `cacheMs`, regardless of the number of callers: `/readyz` is public and must not
 * open a database connection for each request.
 */
export function cachedReadiness<Answer>(
  ask: () => Promise<Answer>,
  now: () => number = performance.now.bind(performance),
): () => Promise<Answer> {
  let cached: { answer: Promise<Answer>; until: number } | undefined
  return () => {
    if (!cached || now() >= cached.until) {
      const one = { answer: ask(), until: Number.POSITIVE_INFINITY }
      // The cache time starts when the result arrives, so while the database does not respond, only one check waits
      // for it.
      const end = (): void => {
        one.until = now() + cacheMs
      }
      one.answer.then(end, end)
      cached = one
    }
    return cached.answer
  }
}
