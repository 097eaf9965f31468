import { patiently, Refusal, refusalOf } from './answer.ts'
import { openGate } from './gate.ts'
import { whoIsHere } from './who.ts'

/**
 * The access token, which lives ten minutes and only here, in memory. It is drawn from the session, which is a cookie
 * that no script can read. No token is ever kept in the browser's storage.
 */
interface Token {
  token: string
  expires_at: string
}

/** A request that takes a while should not arrive with a token that has just ended. */
const earlyMs = 30_000

let current: Token | undefined
let drawing: Promise<string> | undefined

/** Where the session has ended, this waits until somebody has signed in again: forms and all else stay as they are. */
export function drawToken(): Promise<string> {
  if (current && Date.parse(current.expires_at) - earlyMs > Date.now()) return Promise.resolve(current.token)
  drawing ??= draw().finally(() => {
    drawing = undefined
  })
  return drawing
}

/** It was refused. If another was drawn since, that one stays. */
export function forgetToken(refused?: string): void {
  if (refused === undefined || current?.token === refused) current = undefined
}

async function draw(): Promise<string> {
  for (;;) {
    const response = await patiently((signal) =>
      fetch('/v1/auth/token', { method: 'POST', cache: 'no-store', signal }),
    )
    if (response.ok) {
      const drawn = (await response.json()) as Token
      await mindWhose(drawn.token)
      current = drawn
      return drawn.token
    }
    const refusal = await refusalOf(response)
    if (refusal.status !== 401) throw refusal
    // Signed in, and yet no token: an administrator without a second factor. To sign in again would not help.
    if (await isSignedIn()) throw new Refusal(403, refusal.code, refusal.message)
    await openGate()
  }
}

async function isSignedIn(): Promise<boolean> {
  const response = await patiently((signal) => fetch('/v1/auth/session', { cache: 'no-store', signal }))
  return response.ok
}

/**
 * In another tab somebody else may have signed in meanwhile. What is on this page is not theirs, and what was begun here
 * must not be done in their name: the page begins anew, and what waits for the token never gets one.
 */
async function mindWhose(token: string): Promise<void> {
  const known = whoIsHere()
  const { sub } = JSON.parse(atob((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')))
  if (known === undefined || String(known) === sub) return
  window.location.reload()
  await new Promise<never>(() => undefined)
}
