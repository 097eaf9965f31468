import { ApiError, apiErrorOf, withTimeout } from './api-error.ts'
import { currentUserId } from './current-user.ts'
import { waitForSignIn } from './sign-in-gate.ts'

/**
 * The access token. It is valid for ten minutes and is kept only in memory; tokens are never persisted in the browser.
 * It is issued for the session. Scripts cannot read the session cookie.
 */
interface Token {
  token: string
  expires_at: string
}

/** Renewed this long before it expires, so that a slow request does not arrive with an expired token. */
const renewBeforeMs = 30_000

let current: Token | undefined
let pending: Promise<string> | undefined

/** If the session has ended, waits until the user has signed in again. Forms and pages keep their state. */
export function getToken(): Promise<string> {
  if (current && Date.parse(current.expires_at) - renewBeforeMs > Date.now()) {
    return Promise.resolve(current.token)
  }
  pending ??= requestToken().finally(() => {
    pending = undefined
  })
  return pending
}

/** Drops a rejected token. A newer token is kept. */
export function discardToken(rejected?: string): void {
  if (rejected === undefined || current?.token === rejected) current = undefined
}

async function requestToken(): Promise<string> {
  for (;;) {
    const response = await withTimeout((signal) =>
      fetch('/v1/auth/token', { method: 'POST', cache: 'no-store', signal }),
    )
    if (response.ok) {
      const issued = (await response.json()) as Token
      await reloadIfOtherUser(issued.token)
      current = issued
      return issued.token
    }
    const error = await apiErrorOf(response)
    if (error.status !== 401) throw error
    // The session is valid but gets no token: an administrator without two-factor authentication. Signing in again
    // would not help.
    if (await isSignedIn()) throw new ApiError(403, error.code, error.message)
    await waitForSignIn()
  }
}

/**
 * For a change that requires a recent second factor. Ends the session, because only a new session has a new second factor, and
 * waits until the user has signed in. Forms and pages keep their state.
 */
export async function signInAgain(): Promise<void> {
  const response = await withTimeout((signal) => fetch('/v1/auth/sign-out', { method: 'POST', signal }))
  if (!response.ok) throw await apiErrorOf(response)
  discardToken()
  await waitForSignIn('second factor')
}

async function isSignedIn(): Promise<boolean> {
  const response = await withTimeout((signal) => fetch('/v1/auth/session', { cache: 'no-store', signal }))
  return response.ok
}

/**
 * Another user may have signed in in another tab. Nothing started on this page may be done on that user's behalf: the
 * page reloads, and requests that are waiting for a token never receive one.
 */
async function reloadIfOtherUser(token: string): Promise<void> {
  const known = currentUserId()
  const { sub } = JSON.parse(atob((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')))
  if (known === undefined || String(known) === sub) return
  window.location.reload()
  await new Promise<never>(() => undefined)
}
