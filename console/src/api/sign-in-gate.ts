import { useSyncExternalStore } from 'react'

/**
 * Requests that need a session wait here until a user signs in. The page shows the sign-in form while any request
 * waits.
 */
export type SignInCause = 'no session' | 'second factor'

let waiting: { signedIn: Promise<void>; resolve: () => void; cause: SignInCause } | undefined
let count = 0
const listeners = new Set<() => void>()

export function waitForSignIn(cause: SignInCause = 'no session'): Promise<void> {
  if (!waiting) {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting = { signedIn: promise, resolve, cause }
    notify()
  }
  return waiting.signedIn
}

export function resumeAfterSignIn(): void {
  const before = waiting
  waiting = undefined
  count++
  before?.resolve()
  notify()
}

/** How many times a user has signed in on this page. */
export const signInCount = (): number => count

export function useIsSignInNeeded(): boolean {
  return useSyncExternalStore(subscribe, () => waiting !== undefined)
}

/** Why the user has to sign in. Undefined if nobody waits for it. */
export function useSignInCause(): SignInCause | undefined {
  return useSyncExternalStore(subscribe, () => waiting?.cause)
}

function notify(): void {
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
