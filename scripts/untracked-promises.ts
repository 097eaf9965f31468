import asyncHooks, { type HookCallbacks } from 'node:async_hooks'

/**
 * Node's test runner tracks all asynchronous resources with async hooks, to attribute an uncaught error to its test.
 * Tracking promises costs about thirty times as much as the promises themselves (300,000 awaits: 2,000 ms instead of
 * 70), and the tests run a whole API. Promises are therefore not tracked: some uncaught errors are attributed only to
 * their file, which still fails (untracked-promises.test.ts). A `describe` must not await anything before it has
 * declared its tests; otherwise the tests are not attributed to it.
 *
 * Only the first hook is changed: the runner creates it when it is loaded.
 */
const { createHook } = asyncHooks

asyncHooks.createHook = (callbacks: HookCallbacks) => {
  asyncHooks.createHook = createHook
  return createHook({ ...callbacks, trackPromises: false })
}
