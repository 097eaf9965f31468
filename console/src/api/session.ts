import { useSuspenseQuery } from '@tanstack/react-query'
import { ApiError } from './api-error.ts'
import { type AnswerOf, type BodyOf, call } from './client.ts'
import { currentUserId, setCurrentUserId } from './current-user.ts'
import { queryClient } from './queries.ts'
import { resumeAfterSignIn, waitForSignIn } from './sign-in-gate.ts'
import { discardToken } from './token.ts'

export type Me = AnswerOf<'auth.show-session'>['user']

/** The signed-in user. Suspends until a user has signed in. */
export function useMe(): Me {
  return useSuspenseQuery({
    queryKey: ['me'],
    queryFn: loadMe,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  }).data
}

async function loadMe(): Promise<Me> {
  for (;;) {
    try {
      const { user } = await call('auth.show-session')
      setCurrentUserId(user.id)
      return user
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 401)) throw error
      await waitForSignIn()
    }
  }
}

/** Returns whether a second factor is still required. */
export async function signIn(email: string, password: string): Promise<boolean> {
  return (await call('auth.sign-in', { body: { email, password } })).second_factor_required
}

/** The same with a passkey. A passkey that verified its user needs no second factor. */
export async function signInWithPasskey(
  credential: BodyOf<'auth.sign-in-with-passkey'>['credential'],
): Promise<boolean> {
  return (await call('auth.sign-in-with-passkey', { body: { credential } })).second_factor_required
}

export async function submitCode(code: string): Promise<void> {
  if (/^\d{6}$/.test(code)) await call('auth.verify-totp', { body: { code } })
  else await call('auth.verify-backup-code', { body: { code } })
}

/**
 * Resumes the page after sign-in. If a different user has signed in, the page reloads, so that none of the previous
 * user's data remains.
 */
export async function enter(): Promise<void> {
  const { user } = await call('auth.show-session')
  discardToken()
  if (currentUserId() !== undefined && currentUserId() !== user.id) {
    window.location.reload()
    return
  }
  setCurrentUserId(user.id)
  queryClient.setQueryData(['me'], user)
  resumeAfterSignIn()
}

/**
 * All tabs of a browser share the session. When the session ends in one tab, the others reload, so that no data stays
 * on screen.
 */
const tabs = new BroadcastChannel('postern-session')
tabs.onmessage = () => window.location.reload()

export async function signOut(): Promise<void> {
  await call('auth.sign-out')
  tabs.postMessage('signed out')
  window.location.reload()
}
