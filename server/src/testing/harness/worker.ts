import { workerDeps } from '../../context/context.ts'
import { JobRunner } from '../../platform/jobs/jobs.ts'
import { startWorker } from '../../worker/worker.ts'
import type { TestApi } from './api.ts'
import { openDatabase, type TestDatabase } from './database.ts'
import { patienceMs } from './waiting.ts'

/** As the service runs: with a worker, for as long as `work` takes. */
export async function withWorker(
  api: TestApi,
  database: TestDatabase,
  work: () => Promise<void>,
): Promise<void> {
  // One that was stopped does not start again.
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
