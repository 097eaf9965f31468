import asyncHooks, { type HookCallbacks } from 'node:async_hooks'

/**
 * Node's test runner has itself told of the beginning and the end of whatever waits, timers, sockets and promises, to say
 * in which test an error was thrown that nobody caught. To be told of promises costs some thirty times as much as the
 * promises themselves (300,000 awaits: 2,000 ms instead of 70), and what tests run here, a whole API, is made of them. So
 * it is told of all but promises: of some of these errors it says only in which file they were thrown, and that file fails
 * all the same (unwatched-promises.test.ts). And a `describe` must not wait before it has named its tests, which would
 * no longer be found to be its own.
 *
 * The first to ask for such news is the runner, as soon as it is loaded. Whoever asks later gets what they ask for.
 */
const { createHook } = asyncHooks

asyncHooks.createHook = (callbacks: HookCallbacks) => {
  asyncHooks.createHook = createHook
  return createHook({ ...callbacks, trackPromises: false })
}
