import { workerDeps } from '../../context/context.ts'
import { JobRunner } from '../../platform/jobs/jobs.ts'
import { startWorker } from '../../worker/worker.ts'
import type { TestApi } from './api.ts'
import { openDatabase, type TestDatabase } from './database.ts'
import { patienceMs } from './waiting.ts'

/** Runs a worker until `work` resolves. */
export async function withWorker(
  api: TestApi,
  database: TestDatabase,
  work: () => Promise<void>,
): Promise<void> {
  // A stopped runner cannot be started again.
  const runner = new JobRunner({ db: openDatabase(database).statementsAsAdmin(), onError: () => {} })
  const worker = startWorker({
    ...workerDeps(api.context),
    runner,
    home: api.context.cells.all[0],
    hasJobs: true,
  })
  try {
    await work()
  } finally {
    await worker.stop(patienceMs)
  }
}
