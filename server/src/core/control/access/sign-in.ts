/**
 * Signing in with email, password and TOTP, and operations on sessions.
 *
 * A session is a cookie that only the signin plane reads. All other planes require access tokens, which are issued from the
 * session and valid for ten minutes. An administrator's token is issued only from a session with a second factor. Revoking a
 * session invalidates its tokens immediately: they contain the session id, which is looked up on every request.
 */
import type { JWK } from 'jose'
import type { Db } from '../../../platform/db/db.ts'
import { translateFailure } from '../../../platform/db/failures.ts'
import { PosternError, UsageError } from '../../../platform/errors.ts'
import { activityPage, recordProjectActivity, recordUserActivity } from '../activity/activity.ts'
import { acceptInvitation, createInvitedUser } from '../members/invitations.ts'
import { memberActivity, memberView } from '../members/members.ts'
import { type Rights, rightsOf } from '../users/wire.ts'
import {
  deleteChallenges,
  deletePasswordOnlySessions,
  deleteResets,
  findSignInUser,
  insertPassword,
  listSessions,
  listSigningKeys,
} from './access.sql.ts'
import {
  type AccessToken,
  type BetterAuth,
  clientAddressHeader,
  requestIdHeader,
  signAccessToken,
  userIdHeader,
} from './better-auth.ts'
import type { Browser } from './browser.ts'
import { HashingSlots } from './hashing-slots.ts'
import { type Issuer, signingKeyGraceSeconds } from './issuers.ts'
import type { PasswordBackoff } from './password-backoff.ts'
import { withUnchangedPassword } from './password-race.ts'
import { requestReset, resetPassword } from './password-reset.ts'
import { entryOf, SignInRecords } from './sign-in-records.ts'
import { alreadySignedIn, notSignedIn, refusalOf } from './sign-in-refusals.ts'
import { secondFactorNeeded } from './verify-access-token.ts'

export type { Browser }

/** The response body and the cookies to set. */
export interface SignInResponse<T> {
  body: T
  cookies: string[]
}

export interface SignInResult {
  user: {
    id: number
    email: string
    name: string
    role: string
    /** Null for users who are not administrators. */
    rights: Rights | null
    second_factor_enabled: boolean
  }
  session: { id: number; second_factor_at: Date | null; expires_at: Date }
}

/** The session as `/get-session` returns it. */
interface BetterAuthSession {
  id: string
  userId: string
  expiresAt: string
  secondFactorAt: string | null
}

export interface SignInOptions {
  auth: BetterAuth
  db: Db
  issuer: Issuer
  backoff: PasswordBackoff
  /** Whether this installation can email password reset links. */
  mailsResets: boolean
  slots?: HashingSlots
  onError: (error: unknown, what: string) => void
}

export class SignIn {
  readonly #auth: BetterAuth
  readonly #db: Db
  readonly #issuer: Issuer
  readonly #backoff: PasswordBackoff
  readonly #slots: HashingSlots
  readonly #mailsResets: boolean
  readonly #records: SignInRecords

  constructor({
    auth,
    db,
    issuer,
    backoff,
    mailsResets,
    slots = new HashingSlots(),
    onError,
  }: SignInOptions) {
    this.#records = new SignInRecords(db, onError)
    this.#auth = auth
    this.#db = db
    this.#issuer = issuer
    this.#backoff = backoff
    this.#slots = slots
    this.#mailsResets = mailsResets
  }

  async withPassword(
    browser: Browser,
    email: string,
    password: string,
  ): Promise<SignInResponse<{ second_factor_required: boolean }>> {
    const userKey = { email: email.toLowerCase() }
    const { body, cookies } = await this.#withBackoff(browser, email, () =>
      withUnchangedPassword(this.#db, storable(userKey.email), () =>
        this.#call('/sign-in/email', browser, { email, password }),
      ),
    ).catch(this.#records.recordFailure(browser, 'auth.sign-in', userKey, 'password'))
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
    const { body, cookies } = await this.#call(
      '/two-factor/verify-totp',
      browser,
      { code },
      signedIn?.user.id,
    ).catch(this.#records.recordFailure(browser, 'auth.sign-in', userKey, 'totp'))
    if (!signedIn) await this.#records.signedIn(browser, userIn(body), 'totp')
    if (signedIn) await this.#db.transaction((tx) => deletePasswordOnlySessions(tx, signedIn.user.id))
    return { body: null, cookies }
  }

  async withBackupCode(browser: Browser, code: string): Promise<SignInResponse<null>> {
    if (await this.#signedIn(browser)) throw alreadySignedIn()
    const userKey = await this.#records.challenged(browser)
    const { body, cookies } = await this.#call('/two-factor/verify-backup-code', browser, { code }).catch(
      this.#records.recordFailure(browser, 'auth.sign-in', userKey, 'backup_code'),
    )
    await this.#records.signedIn(browser, userIn(body), 'backup_code')
    return { body: null, cookies }
  }

  async signOut(browser: Browser): Promise<SignInResponse<null>> {
    const signedIn = await this.#signedIn(browser)
    if (signedIn) await this.#records.endSession(browser, 'auth.sign-out', signedIn.user, signedIn.session.id)
    const { cookies } = await this.#call('/sign-out', browser, {})
    return { body: null, cookies }
  }

  /** The signed-in user and the session. Using the session renews it. */
  async current(browser: Browser): Promise<SignInResponse<SignInResult>> {
    const { body, cookies } = await this.#call('/get-session', browser)
    const session = body['session'] as BetterAuthSession | undefined
    if (!session) throw notSignedIn()
    const user = await this.#db.read((tx) => findSignInUser(tx, { id: Number(session.userId) }))
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
        },
        session: {
          id: Number(session.id),
          second_factor_at: session.secondFactorAt ? new Date(session.secondFactorAt) : null,
          expires_at: new Date(session.expiresAt),
        },
      },
    }
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

  /** Revokes all of the user's other sessions. */
  async changePassword(
    browser: Browser,
    currentPassword: string,
    newPassword: string,
  ): Promise<SignInResponse<null>> {
    const { body } = await this.current(browser)
    if (body.user.second_factor_enabled && body.session.second_factor_at === null) {
      throw new PosternError('unauthenticated', secondFactorNeeded)
    }
    const { id, email } = body.user
    const passwords = { currentPassword, newPassword, revokeOtherSessions: true }
    const { cookies } = await this.#callWithPassword('/change-password', browser, email, passwords, id).catch(
      this.#records.recordFailure(browser, 'auth.change-password', body.user, 'password'),
    )
    await this.#db.transaction(async (tx) => {
      await deleteChallenges(tx, id)
      await deleteResets(tx, id)
    })
    return { body: null, cookies }
  }

  async startTotp(
    browser: Browser,
    password: string,
  ): Promise<SignInResponse<{ totp_uri: string; backup_codes: string[] }>> {
    const { user } = (await this.current(browser)).body
    const { body, cookies } = await this.#callWithPassword('/two-factor/enable', browser, user.email, {
      password,
    }).catch(this.#records.recordFailure(browser, 'auth.enroll-totp', user, 'password'))
    const backup_codes = (body['backupCodes'] as string[]).length
    await this.#records.changed(browser, 'auth.enroll-totp', user, { backup_codes })
    return {
      body: { totp_uri: body['totpURI'] as string, backup_codes: body['backupCodes'] as string[] },
      cookies,
    }
  }

  /** For an invited person without an account: creates the account, password and membership in one transaction. */
  async registerInvited(
    browser: Browser,
    { token, name, password }: { token: string; name: string; password: string },
  ) {
    // An invalid token is rejected before the password is hashed, because hashing takes 0.1 s.
    await this.#db.dryRun((tx) => createInvitedUser(tx, token, name))
    const hash = await this.#hash(browser.address, password)
    const member = await this.#db.transaction(async (tx) => {
      const userId = await createInvitedUser(tx, token, name)
      await insertPassword(tx, userId, hash)
      const member = await acceptInvitation(tx, token, userId)
      const change = { resource: 'member', id: member.id, before: null, after: memberActivity(member) }
      const entry = entryOf(browser, 'auth.register-invited', { id: userId, email: member.email }, change)
      await recordProjectActivity(tx, member.project_id, entry)
      await recordUserActivity(tx, userId, entry)
      return member
    })
    return { body: memberView(member), cookies: [] }
  }

  /** The response is the same for every address. The worker emails the link if there is an account. */
  async forgotPassword({ address }: Browser, email: string): Promise<SignInResponse<null>> {
    if (!this.#mailsResets) {
      throw new PosternError(
        'not_found',
        'This installation does not send password reset links. Ask its operator to reset your password.',
      )
    }
    await requestReset(this.#db, email, address)
    return { body: null, cookies: [] }
  }

  /** Does not create a session: the sign-in that follows requires the second factor. */
  async resetPassword(browser: Browser, token: string, password: string): Promise<SignInResponse<null>> {
    await resetPassword(
      this.#db,
      token,
      () => this.#hash(browser.address, password),
      (tx, userId) => this.#records.passwordReset(tx, browser, userId),
    )
    return { body: null, cookies: [] }
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

  async #hash(address: string, password: string): Promise<string> {
    const { password: hashing } = await this.#auth.$context
    return this.#slots.run(address, () => hashing.hash(password))
  }

  /** Calls an endpoint that checks a password, subject to the hashing slots and the account's backoff. */
  #callWithPassword(
    path: string,
    browser: Browser,
    email: string,
    body: Record<string, unknown>,
    userId?: number,
  ): Promise<SignInResponse<Record<string, unknown>>> {
    return this.#withBackoff(browser, email, () => this.#call(path, browser, body, userId))
  }

  async #withBackoff(
    browser: Browser,
    email: string,
    attempt: () => Promise<SignInResponse<Record<string, unknown>>>,
  ): Promise<SignInResponse<Record<string, unknown>>> {
    const { result, cookie } = await this.#slots.run(browser.address, () =>
      this.#backoff.attempt(storable(email), browser.cookie, attempt),
    )
    return { body: result.body, cookies: [...result.cookies, cookie] }
  }

  /** Calls a Better Auth endpoint: POST with a body, GET without. */
  async #call(
    path: string,
    browser: Browser,
    body?: Record<string, unknown>,
    userId?: number,
  ): Promise<SignInResponse<Record<string, unknown>>> {
    const { origin } = new URL(this.#issuer.issuer)
    const headers = new Headers({
      // The signin plane has already rejected other origins. A client that sends no Origin is not a browser.
      origin,
      'content-type': 'application/json',
      [clientAddressHeader]: browser.address,
      [requestIdHeader]: browser.requestId,
      ...(userId === undefined ? {} : { [userIdHeader]: String(userId) }),
    })
    if (browser.cookie !== undefined) headers.set('cookie', browser.cookie)
    if (browser.userAgent !== undefined) headers.set('user-agent', browser.userAgent)
    const request = new Request(new URL(path, origin), {
      headers,
      ...(body === undefined ? { method: 'GET' } : { method: 'POST', body: JSON.stringify(body) }),
    })
    const response = await this.#auth.handler(request).catch((error: unknown) => {
      throw translateFailure(error)
    })
    const answerBody = ((await response.json().catch(() => null)) ?? {}) as Record<string, unknown>
    if (!response.ok) throw refusalOf(response, answerBody)
    return { body: answerBody, cookies: response.headers.getSetCookie() }
  }
}

/** PostgreSQL rejects NUL in parameters. Better Auth rejects such an address afterwards. */
const storable = (email: string): string => email.replaceAll('\0', '\uFFFD')

/** The user in a Better Auth response. */
function userIn({ user }: Record<string, unknown>): { id: number } {
  const id = Number((user as { id?: unknown } | undefined)?.id)
  if (!Number.isSafeInteger(id)) throw new Error('the response of Better Auth contains no user')
  return { id }
}
