/**
 * Writes sign-ins to a user's activity. Better Auth writes outside these transactions, so a success is recorded before its
 * cookie is sent: a session without a sent cookie grants no access. Changes to credentials are recorded before they are made
 * (better-auth.ts).
 */
import type { Db, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import {
  type ActivityChange,
  type ActivityEntry,
  recordAttempt,
  recordUserActivity,
} from '../activity/activity.ts'
import { deleteOtherSessions, deleteSession, findChallengedUserId, findSignInUser } from './access.sql.ts'
import type { UserOperation } from './account-changes.ts'
import type { Browser } from './browser.ts'

type UserKey = { id: number } | { email: string }

export class SignInRecords {
  readonly #db: Db
  readonly #onError: (error: unknown, what: string) => void

  constructor(db: Db, onError: (error: unknown, what: string) => void) {
    this.#db = db
    this.#onError = onError
  }

  /** `isPending`: the password was correct and a second factor must follow. Such attempts are not limited in number. */
  signedIn(browser: Browser, userKey: UserKey, method: Method, isPending = false): Promise<void> {
    const after = { outcome: 'success', method, second_factor_required: isPending }
    return this.#db.transaction(async (tx) => {
      const user = await findSignInUser(tx, userKey)
      // No cookie is sent unless its row has been written.
      if (!user) throw new Error('a sign-in succeeded for a user that does not exist')
      const entry = entryOf(browser, 'auth.sign-in', user, sessionChange(after))
      if (isPending) await recordAttempt(tx, user.id, entry, 'success')
      else await recordUserActivity(tx, user.id, entry)
    })
  }

  changed(browser: Browser, operation: UserOperation, user: { id: number; email: string }, after: object) {
    const change = { resource: 'account', id: user.id, before: null, after }
    return this.#db.transaction((tx) =>
      recordUserActivity(tx, user.id, entryOf(browser, operation, user, change)),
    )
  }

  /** The account is created in the same transaction. */
  accountMade(tx: Tx, browser: Browser, operation: UserOperation, user: { id: number; email: string }) {
    const change = { resource: 'account', id: user.id, before: null, after: null }
    return recordUserActivity(tx, user.id, entryOf(browser, operation, user, change))
  }

  async passwordReset(tx: Tx, browser: Browser, userId: number): Promise<void> {
    const user = await findSignInUser(tx, { id: userId })
    if (!user) return
    const change = { resource: 'account', id: user.id, before: null, after: null }
    await recordUserActivity(tx, user.id, entryOf(browser, 'auth.reset-password', user, change))
  }

  /** Deletes the session and records the deletion in one transaction. */
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

  endOtherSessions(browser: Browser, user: { id: number; email: string }, keptId: number): Promise<void> {
    return this.#db.transaction(async (tx) => {
      const ended = await deleteOtherSessions(tx, user.id, keptId)
      if (ended === 0) return
      const change = { resource: 'account', id: user.id, before: null, after: { ended_sessions: ended } }
      await recordUserActivity(tx, user.id, entryOf(browser, 'auth.end-other-sessions', user, change))
    })
  }

  /**
   * The user whose sign-in awaits a second factor. The cookie identifies the attempt; Better Auth verifies its signature.
   */
  async challenged({ cookie = '' }: Browser): Promise<UserKey | undefined> {
    const [, identifier] = /(?:^|;\s*)(?:__Secure-)?postern\.two_factor=(2fa-[\w-]+)/.exec(cookie) ?? []
    if (identifier === undefined) return undefined
    const id = await this.#db.read((tx) => findChallengedUserId(tx, identifier))
    return id === undefined ? undefined : { id }
  }

  /** A sign-in of this user that was authentic and is not allowed. */
  refused(browser: Browser, user: { id: number }, method: Method): Promise<void> {
    const entry = entryOf(browser, 'auth.sign-in', undefined, sessionChange({ outcome: 'failure', method }))
    return this.#db.transaction(async (tx) => {
      await recordAttempt(tx, user.id, entry)
    })
  }

  /**
   * Rethrows a rejection, and records it if the account exists. The response does not wait for the record to be written,
   * because the response time would then reveal whether the account exists.
   */
  recordFailure(
    browser: Browser,
    operation: string,
    userKey: UserKey | undefined,
    method: Method,
  ): (error: unknown) => never {
    return (error) => {
      if (userKey && error instanceof PosternError && error.code === 'unauthenticated') {
        const entry = entryOf(browser, operation, undefined, sessionChange({ outcome: 'failure', method }))
        this.#db
          .transaction(async (tx) => {
            const user = await findSignInUser(tx, userKey)
            if (user) await recordAttempt(tx, user.id, entry)
          })
          .catch((failure: unknown) => this.#onError(failure, 'failed to record a failed sign-in'))
      }
      throw error
    }
  }
}

type Method = 'password' | 'totp' | 'backup_code' | 'passkey' | 'issuer'

const sessionChange = (after: object): ActivityChange => ({
  resource: 'session',
  id: null,
  before: null,
  after,
})

/** The actor is the user, or `unknown` if there is none. */
export const entryOf = <Operation extends string>(
  { requestId, address: ip, userAgent }: Browser,
  operation: Operation,
  user: { id: number; email: string } | undefined,
  change: ActivityChange,
): ActivityEntry<Operation> => {
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
