import { useSuspenseQuery } from '@tanstack/react-query'
import { Refusal } from './answer.ts'
import { type AnswerOf, call } from './client.ts'
import { openGate, signedIn } from './gate.ts'
import { queryClient } from './queries.ts'
import { forgetToken } from './token.ts'
import { thisIs, whoIsHere } from './who.ts'

export type Me = AnswerOf<'auth.show-session'>['user']

/** Who is signed in. Waits until somebody is. */
export function useMe(): Me {
  return useSuspenseQuery({
    queryKey: ['me'],
    queryFn: findMe,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  }).data
}

async function findMe(): Promise<Me> {
  for (;;) {
    try {
      const { user } = await call('auth.show-session')
      thisIs(user.id)
      return user
    } catch (error) {
      if (!(error instanceof Refusal && error.status === 401)) throw error
      await openGate()
    }
  }
}

/** Whether a code is still to be given. */
export async function signIn(email: string, password: string): Promise<boolean> {
  return (await call('auth.sign-in', { body: { email, password } })).second_factor_required
}

export async function giveCode(code: string): Promise<void> {
  if (/^\d{6}$/.test(code)) await call('auth.give-totp-code', { body: { code } })
  else await call('auth.give-backup-code', { body: { code } })
}

/** Whoever signs in where another's session has ended gets nothing of theirs. */
export async function enter(): Promise<void> {
  const { user } = await call('auth.show-session')
  forgetToken()
  if (whoIsHere() !== undefined && whoIsHere() !== user.id) {
    window.location.reload()
    return
  }
  thisIs(user.id)
  queryClient.setQueryData(['me'], user)
  signedIn()
}

/** Tabs of the same browser share the session, and so its end: nothing stays on a screen that nobody looks after. */
const tabs = new BroadcastChannel('postern-session')
tabs.onmessage = () => window.location.reload()

export async function signOut(): Promise<void> {
  await call('auth.sign-out')
  tabs.postMessage('signed out')
  window.location.reload()
}
