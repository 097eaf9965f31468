import type { Context } from '../context/context.ts'
import { pendingMigrations } from '../platform/db/migrate.ts'
import { PosternError } from '../platform/errors.ts'

/** `replica` is there where sending from the cell of this process is paused. */
export interface Readiness {
  status: 'ready'
  replica?: 'stale'
}

/**
 * Whether a process can do its work: rejects with a sentence that says why not.
 *
 * A copy of control that is too old is told, and does not make a process unready: inbound mail and reports must go on, and
 * when control is away every cell is in this state, so that a load balancer would have nobody left to send to.
 */
export async function requireReady(
  { config, db, home, replicas, log, jobs }: Context,
  { needsJobs }: { needsJobs: boolean },
): Promise<Readiness> {
  // At home in a cell, mail is taken whether control answers or not.
  const pending = await (home?.admin ?? db.admin).read(pendingMigrations).catch((error: unknown) => {
    log.error({ err: error }, 'not ready: the database cannot be used')
    throw new PosternError(
      'unavailable',
      'The database cannot be used: is it up, and was `postern migrate` run?',
    )
  })
  if (pending.length > 0) {
    throw new PosternError('unavailable', 'The database lacks migrations: run `postern migrate`.')
  }
  if (needsJobs && !jobs.isReady && config.cell === undefined) {
    throw new PosternError('unavailable', 'The job queue cannot be used: was `postern migrate` run?')
  }
  const replica = home && replicas.get(home)
  return { status: 'ready', ...((await replica?.isStale()) && { replica: 'stale' }) }
}

/** For how long an answer holds. Load balancers ask every second or less often. */
const heldMs = 1_000

/**
 * Asks once in `heldMs`, whoever calls and however often: `/readyz` is open to anybody, and must not cost a connection
 * to the database for each request.
 */
export function heldReadiness<Answer>(
  ask: () => Promise<Answer>,
  now: () => number = performance.now.bind(performance),
): () => Promise<Answer> {
  let held: { answer: Promise<Answer>; until: number } | undefined
  return () => {
    if (!held || now() >= held.until) {
      const one = { answer: ask(), until: Number.POSITIVE_INFINITY }
      // From the answer on: while the database does not answer, one question waits for it.
      const end = (): void => {
        one.until = now() + heldMs
      }
      one.answer.then(end, end)
      held = one
    }
    return held.answer
  }
}
