import { AsyncResource } from 'node:async_hooks'
import { after } from 'node:test'

/**
 * What a test file opened is closed when its tests are over, last opened first. Open at the top level of the file, before
 * its first test: tests are also over when those named so far are, while the file waits for something.
 */
const steps: (() => Promise<unknown>)[] = []

/** Where the file began, outside of all tests: whoever opens something may be within one, whose end would count. */
const file = new AsyncResource('test file')

export function cleanUp(step: () => Promise<unknown>): void {
  if (steps.length === 0) file.runInAsyncScope(() => after(closeAll))
  steps.push(step)
}

/** All of it, whatever fails: a process left behind would keep the run from ending, and hide why. */
async function closeAll(): Promise<void> {
  const failures: unknown[] = []
  for (let step = steps.pop(); step; step = steps.pop()) {
    await step().catch((error: unknown) => failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}
