import { useSyncExternalStore } from 'react'

/**
 * The gate opens when somebody signs in. Whoever needs a session waits here; the page shows the form as long as
 * anybody waits.
 */
let waiting: { opened: Promise<void>; open: () => void } | undefined
let opened = 0
const watchers = new Set<() => void>()

export function openGate(): Promise<void> {
  if (!waiting) {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting = { opened: promise, open: resolve }
    tell()
  }
  return waiting.opened
}

export function signedIn(): void {
  const before = waiting
  waiting = undefined
  opened++
  before?.open()
  tell()
}

/** How often somebody has signed in here. */
export const signIns = (): number => opened

export function useIsSignInNeeded(): boolean {
  return useSyncExternalStore(watch, () => waiting !== undefined)
}

function tell(): void {
  for (const watcher of watchers) watcher()
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}
