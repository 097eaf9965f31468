import { AsyncResource } from 'node:async_hooks'
import { after } from 'node:test'

/**
 * Closes the resources of a test file after its tests, in reverse order. Register resources at the top level of the
 * file, before its first test: if the file awaits something after that, the hooks can run as soon as all tests defined
 * so far are done.
 */
const steps: (() => Promise<unknown>)[] = []

/** Runs in the context of the file, because a hook registered inside a test would run at the end of that test. */
const file = new AsyncResource('test file')

export function cleanUp(step: () => Promise<unknown>): void {
  if (steps.length === 0) file.runInAsyncScope(() => after(closeAll))
  steps.push(step)
}

/**
 * Runs all cleanups, even if some fail: a process left running would prevent the run from ending and hide the cause.
 */
async function closeAll(): Promise<void> {
  const failures: unknown[] = []
  for (let step = steps.pop(); step; step = steps.pop()) {
    await step().catch((error: unknown) => failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}
