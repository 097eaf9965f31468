import type { Context } from './context.ts'
import { pendingMigrations } from './platform/db/migrate.ts'
import { PosternError } from './platform/errors.ts'

/** Whether a process can do its work: rejects with a sentence that says why not. */
export async function requireReady(
  { config, db, home, log, jobs }: Context,
  { needsJobs }: { needsJobs: boolean },
) {
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
}
