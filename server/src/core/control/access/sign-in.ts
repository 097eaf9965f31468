/**
 * Signing in with email, password and TOTP, and operations on sessions.
 *
 * A session is a cookie that only the signin plane reads. All other planes require access tokens, which are issued from the
 * session and valid for ten minutes. An administrator's token is issued only from a session with a second factor. Revoking a
 * session invalidates its tokens immediately: they contain the session id, which is looked up on every request.
 */
import type { JWK } from 'jose'
import type { Db } from '../../../platform/db/db.ts'
import { PosternError, UsageError } from '../../../platform/errors.ts'
import { activityPage } from '../activity/activity.ts'
import { type Rights, rightsOf } from '../users/wire.ts'
import {
  deletePasswordOnlySessions,
  findSignInUser,
  hasPassword,
  listSessions,
  listSigningKeys,
} from './access.sql.ts'
import { type AccessToken, type BetterAuth, signAccessToken } from './better-auth.ts'
import { type BetterAuthCalls, type SignInResponse, storable } from './better-auth-calls.ts'
import type { Browser } from './browser.ts'
import { type Issuer, signingKeyGraceSeconds } from './issuers.ts'
import { withUnchangedPassword } from './password-race.ts'
import type { SignInRecords } from './sign-in-records.ts'
import { alreadySignedIn, notSignedIn } from './sign-in-refusals.ts'
import { isRecentSecondFactor, secondFactorNeeded } from './verify-access-token.ts'

export type { Browser }

export interface SignInResult {
  user: {
    id: number
    email: string
    name: string
    role: string
    /** Null for users who are not administrators. */
    rights: Rights | null
    second_factor_enabled: boolean
    /** False for a user who signs in with passkeys or at an issuer only. */
    has_password: boolean
  }
  session: {
    id: number
    second_factor_at: Date | null
    /** When an external issuer authenticated the user for this session. */
    external_auth_at: Date | null
    expires_at: Date
  }
}

/** The session as `/get-session` returns it. */
interface BetterAuthSession {
  id: string
  userId: string
  expiresAt: string
  secondFactorAt: string | null
  externalAuthAt: string | null
}

export interface SignInOptions {
  auth: BetterAuth
  calls: BetterAuthCalls
  records: SignInRecords
  db: Db
  issuer: Issuer
}

export class SignIn {
  readonly #auth: BetterAuth
  readonly #calls: BetterAuthCalls
  readonly #records: SignInRecords
  readonly #db: Db
  readonly #issuer: Issuer

  constructor({ auth, calls, records, db, issuer }: SignInOptions) {
    this.#auth = auth
    this.#calls = calls
    this.#records = records
    this.#db = db
    this.#issuer = issuer
  }

  async withPassword(
    browser: Browser,
    email: string,
    password: string,
  ): Promise<SignInResponse<{ second_factor_required: boolean }>> {
    const userKey = { email: email.toLowerCase() }
    const { body, cookies } = await this.#calls
      .withBackoff(browser, email, () =>
        withUnchangedPassword(
          this.#db,
          storable(userKey.email),
          () => this.#calls.call('/sign-in/email', browser, { email, password }),
          () => this.#calls.findNoAccounts(),
        ),
      )
      .catch(this.#records.recordFailure(browser, 'auth.sign-in', userKey, 'password'))
    const second_factor_required = body['twoFactorRedirect'] === true
    await this.#records.signedIn(browser, userKey, 'password', second_factor_required)
    return { body: { second_factor_required }, cookies }
  }

  /** Completes a sign-in, or confirms the authenticator in the session that set it up. */
  async withTotp(browser: Browser, code: string): Promise<SignInResponse<null>> {
    const signedIn = await this.#signedIn(browser)
    // Better Auth does not count failures within a session, so codes are accepted only from the session that set up TOTP.
    if (signedIn?.user.second_factor_enabled) throw alreadySignedIn()
    const userKey = signedIn?.user ?? (await this.#records.challenged(browser))
    const { body, cookies } = await this.#calls
      .call('/two-factor/verify-totp', browser, { code }, signedIn?.user.id)
      .catch(this.#records.recordFailure(browser, 'auth.sign-in', userKey, 'totp'))
    if (!signedIn) await this.#records.signedIn(browser, userIn(body), 'totp')
    if (signedIn) await this.#db.transaction((tx) => deletePasswordOnlySessions(tx, signedIn.user.id))
    return { body: null, cookies }
  }

  async withBackupCode(browser: Browser, code: string): Promise<SignInResponse<null>> {
    if (await this.#signedIn(browser)) throw alreadySignedIn()
    const userKey = await this.#records.challenged(browser)
    const { body, cookies } = await this.#calls
      .call('/two-factor/verify-backup-code', browser, { code })
      .catch(this.#records.recordFailure(browser, 'auth.sign-in', userKey, 'backup_code'))
    await this.#records.signedIn(browser, userIn(body), 'backup_code')
    return { body: null, cookies }
  }

  async signOut(browser: Browser): Promise<SignInResponse<null>> {
    const signedIn = await this.#signedIn(browser)
    if (signedIn) await this.#records.endSession(browser, 'auth.sign-out', signedIn.user, signedIn.session.id)
    const { cookies } = await this.#calls.call('/sign-out', browser, {})
    return { body: null, cookies }
  }

  /** The signed-in user and the session. Using the session renews it. */
  async current(browser: Browser): Promise<SignInResponse<SignInResult>> {
    const { body, cookies } = await this.#calls.call('/get-session', browser)
    const session = body['session'] as BetterAuthSession | undefined
    if (!session) throw notSignedIn()
    const userId = Number(session.userId)
    const { user, has_password } = await this.#db.read(async (tx) => ({
      user: await findSignInUser(tx, { id: userId }),
      has_password: await hasPassword(tx, userId),
    }))
    if (!user?.is_active) throw notSignedIn()
    return {
      cookies,
      body: {
        user: {
          id: user.id,
          email: user.email,
          name: user.name,
          role: user.role,
          rights: rightsOf(user),
          second_factor_enabled: user.two_factor_enabled,
          has_password,
        },
        session: {
          id: Number(session.id),
          second_factor_at: session.secondFactorAt ? new Date(session.secondFactorAt) : null,
          external_auth_at: session.externalAuthAt ? new Date(session.externalAuthAt) : null,
          expires_at: new Date(session.expiresAt),
        },
      },
    }
  }

  /** The session. Of a user with a second factor, it must have been verified in it. */
  async withSecondFactor(browser: Browser): Promise<SignInResult> {
    const { user, session } = (await this.current(browser)).body
    if (user.second_factor_enabled && session.second_factor_at === null) {
      throw new PosternError('unauthenticated', secondFactorNeeded)
    }
    return { user, session }
  }

  /**
   * For changes to the account: requires the password, or a second factor within the last minutes. A user without a password
   * can sign in again at an external issuer instead.
   */
  async reauthenticated(
    browser: Browser,
    operation: string,
    password: string | undefined,
  ): Promise<SignInResult> {
    const { user, session } = await this.withSecondFactor(browser)
    if (password === undefined) {
      const isRecent =
        isRecentSecondFactor(session.second_factor_at) ||
        (!user.has_password && isRecentSecondFactor(session.external_auth_at))
      if (!isRecent) {
        throw new PosternError(
          'unauthenticated',
          user.has_password
            ? 'Enter your password, or sign in again with your second factor.'
            : 'Sign in again, and repeat the change within 10 minutes.',
        )
      }
      return { user, session }
    }
    await this.#calls
      .callWithPassword('/verify-password', browser, user.email, { password })
      .catch(this.#records.recordFailure(browser, operation, user, 'password'))
    return { user, session }
  }

  async issueToken(browser: Browser): Promise<SignInResponse<AccessToken>> {
    const { body, cookies } = await this.current(browser)
    if (body.user.role === 'admin' && body.session.second_factor_at === null) {
      throw new PosternError('unauthenticated', secondFactorNeeded)
    }
    return { body: await this.#sign(body.user.id, body.session.id), cookies }
  }

  /** Used by the command line, which has access to the database. The token has no session. */
  async issueShellToken(
    email: string,
  ): Promise<{ token: string; user: { id: number; email: string; name: string } }> {
    const user = await this.#db.read((tx) => findSignInUser(tx, { email }))
    if (user?.role !== 'admin') throw new UsageError(`${email} is not an administrator.`)
    if (!user.is_active) throw new UsageError(`${email} is disabled.`)
    const { token } = await this.#sign(user.id, undefined)
    return { token, user }
  }

  async listSessions(browser: Browser) {
    const { body, cookies } = await this.current(browser)
    const sessions = await this.#db.read((tx) => listSessions(tx, body.user.id))
    return {
      cookies,
      body: sessions.map((session) => ({ ...session, is_current: session.id === body.session.id })),
    }
  }

  async endSession(browser: Browser, sessionId: number): Promise<SignInResponse<null>> {
    const { body, cookies } = await this.current(browser)
    const ended = await this.#records.endSession(browser, 'auth.end-session', body.user, sessionId)
    if (!ended) throw new PosternError('not_found', 'You have no session with this id.')
    return { body: null, cookies }
  }

  /** Ends all of the user's sessions except the current one. */
  async endOtherSessions(browser: Browser): Promise<SignInResponse<null>> {
    const { body, cookies } = await this.current(browser)
    await this.#records.endOtherSessions(browser, body.user, body.session.id)
    return { body: null, cookies }
  }

  async listActivity(browser: Browser, query: { limit?: number; cursor?: string }) {
    const { body, cookies } = await this.current(browser)
    return { cookies, body: await this.#db.read((tx) => activityPage(tx, 'user', body.user.id, query)) }
  }

  /** The public signing keys, as a JWKS. */
  publicKeys(): Promise<JWK[]> {
    return this.#db.read((tx) => listSigningKeys(tx, signingKeyGraceSeconds))
  }

  async #signedIn(browser: Browser): Promise<SignInResult | undefined> {
    try {
      return (await this.current(browser)).body
    } catch (error) {
      if (error instanceof PosternError && error.code === 'unauthenticated') return undefined
      throw error
    }
  }

  async #sign(userId: number, sessionId: number | undefined): Promise<AccessToken> {
    const user = await this.#db.read((tx) => findSignInUser(tx, { id: userId }))
    if (!user?.is_active) throw new PosternError('unauthenticated', 'This user is disabled.')
    const { issuer, audience } = this.#issuer
    return signAccessToken(this.#auth, {
      issuer,
      audience,
      userId,
      sessionId,
      generation: user.token_generation,
    })
  }
}

/** The user in a Better Auth response. */
function userIn({ user }: Record<string, unknown>): { id: number } {
  const id = Number((user as { id?: unknown } | undefined)?.id)
  if (!Number.isSafeInteger(id)) throw new Error('the response of Better Auth contains no user')
  return { id }
}
