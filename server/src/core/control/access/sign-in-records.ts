import type { Db, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import {
  type ActivityChange,
  type ActivityEntry,
  recordAttempt,
  recordUserActivity,
} from '../activity/activity.ts'
import { deleteSession, findChallenged, findSignInUser } from './access.sql.ts'
import type { Browser } from './browser.ts'

type Who = { id: number } | { email: string }

/**
 * The rows that signing in leaves in the activity of a user. Better Auth writes without a transaction of ours, so a
 * success is recorded before its cookie is handed over: a session whose cookie nobody has opens nothing. What changes
 * credentials is recorded before it is done (better-auth.ts).
 */
export class SignInRecords {
  readonly #db: Db
  readonly #onError: (error: unknown, what: string) => void

  constructor(db: Db, onError: (error: unknown, what: string) => void) {
    this.#db = db
    this.#onError = onError
  }

  /** `isPending`: the password was right, and a second factor is asked for; whoever knows it can repeat that. */
  signedIn(browser: Browser, who: Who, method: Method, isPending = false): Promise<void> {
    const after = { outcome: 'success', method, second_factor_required: isPending }
    return this.#db.transaction(async (tx) => {
      const user = await findSignInUser(tx, who)
      // Nothing is handed over without a row.
      if (!user) throw new Error('somebody signed in who is no user')
      const entry = entryOf(browser, 'auth.sign-in', user, sessionChange(after))
      if (isPending) await recordAttempt(tx, user.id, entry, 'success')
      else await recordUserActivity(tx, user.id, entry)
    })
  }

  changed(browser: Browser, operation: string, user: { id: number; email: string }, after: object) {
    const change = { resource: 'account', id: user.id, before: null, after }
    return this.#db.transaction((tx) =>
      recordUserActivity(tx, user.id, entryOf(browser, operation, user, change)),
    )
  }

  async passwordReset(tx: Tx, browser: Browser, userId: number): Promise<void> {
    const user = await findSignInUser(tx, { id: userId })
    if (!user) return
    const change = { resource: 'account', id: user.id, before: null, after: null }
    await recordUserActivity(tx, user.id, entryOf(browser, 'auth.reset-password', user, change))
  }

  /** Ends the session: it and the row, both or neither. */
  endSession(
    browser: Browser,
    operation: 'auth.sign-out' | 'auth.end-session',
    user: { id: number; email: string },
    sessionId: number,
  ): Promise<boolean> {
    return this.#db.transaction(async (tx) => {
      if (!(await deleteSession(tx, user.id, sessionId))) return false
      const change = { resource: 'session', id: sessionId, before: null, after: null }
      await recordUserActivity(tx, user.id, entryOf(browser, operation, user, change))
      return true
    })
  }

  /** Whose sign-in waits for a second factor here. The cookie names the attempt; Better Auth checks its signature. */
  async challenged({ cookie = '' }: Browser): Promise<Who | undefined> {
    const [, identifier] = /(?:^|;\s*)(?:__Secure-)?postern\.two_factor=(2fa-[\w-]+)/.exec(cookie) ?? []
    if (identifier === undefined) return undefined
    const id = await this.#db.read((tx) => findChallenged(tx, identifier))
    return id === undefined ? undefined : { id }
  }

  /**
   * Passes a refusal on, and records it where there is such an account. The answer does not wait for that, or its time
   * would tell whether there is one.
   */
  orFailed(
    browser: Browser,
    operation: string,
    who: Who | undefined,
    method: Method,
  ): (error: unknown) => never {
    return (error) => {
      if (who && error instanceof PosternError && error.code === 'unauthenticated') {
        const entry = entryOf(browser, operation, undefined, sessionChange({ outcome: 'failure', method }))
        this.#db
          .transaction(async (tx) => {
            const user = await findSignInUser(tx, who)
            if (user) await recordAttempt(tx, user.id, entry)
          })
          .catch((failure: unknown) => this.#onError(failure, 'a failed sign-in was not recorded'))
      }
      throw error
    }
  }
}

type Method = 'password' | 'totp' | 'backup_code'

const sessionChange = (after: object): ActivityChange => ({
  resource: 'session',
  id: null,
  before: null,
  after,
})

/** By the user; by somebody unknown where none is given. */
export const entryOf = (
  { requestId, address: ip, userAgent }: Browser,
  operation: string,
  user: { id: number; email: string } | undefined,
  change: ActivityChange,
): ActivityEntry => {
  const client = { ip, userAgent: userAgent ?? null }
  return {
    actor: user
      ? { type: 'user', id: user.id, email: user.email, ...client }
      : { type: 'unknown', id: null, email: null, ...client },
    requestId,
    operation,
    change,
  }
}
