import { after } from 'node:test'

/**
 * What a test file opened is closed when its tests are over, last opened first. Call what opens things at the
 * top level of the file (`const api = await startApi(…)`), not in a `before` hook, whose end would count.
 */
const steps: (() => Promise<unknown>)[] = []

export function cleanUp(step: () => Promise<unknown>): void {
  if (steps.length === 0) after(closeAll)
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
