import { after } from 'node:test'

/**
 * What a test file opened is closed when its tests are over, last opened first. Call what opens things at the
 * top level of the file (`const api = await startApi(…)`), not in a `before` hook, whose end would count.
 */
const steps: (() => Promise<unknown>)[] = []

export function cleanUp(step: () => Promise<unknown>): void {
  if (steps.length === 0) {
    after(async () => {
      while (steps.length > 0) await steps.pop()?.()
    })
  }
  steps.push(step)
}
