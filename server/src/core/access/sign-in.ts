import type { JWK } from 'jose'
import type { Db } from '../../platform/db/db.ts'
import { translateFailure } from '../../platform/db/failures.ts'
import { PosternError, UsageError } from '../../platform/errors.ts'
import { acceptInvitation, createInvitedUser } from '../members/invitations.ts'
import { memberView } from '../members/members.ts'
import {
  deleteChallenges,
  deletePasswordOnlySessions,
  deleteSession,
  findSignInUser,
  insertPassword,
  listSessions,
  listSigningKeys,
} from './access.sql.ts'
import { secondFactorNeeded } from './bearer.ts'
import { type AccessToken, type BetterAuth, clientAddressHeader, signAccessToken } from './better-auth.ts'
import { type Issuer, signingKeyGraceSeconds } from './issuers.ts'

/**
 * Signing in with email, password and TOTP, and what a session is good for.
 *
 * A session is a cookie that only the signin plane reads; everything else takes the ten-minute access
 * tokens drawn from it. An administrator's token is drawn only from a session that was opened with a second
 * factor. Ending a session ends the tokens drawn from it at once: they carry its id, and it is looked up.
 */

/** The part of a request that signing in is about. */
export interface Browser {
  cookie: string | undefined
  address: string
  userAgent: string | undefined
}

/** What goes back, with the cookies to set. */
export interface Answer<T> {
  body: T
  cookies: string[]
}

export interface SignedIn {
  user: { id: number; email: string; name: string; role: string; second_factor_enabled: boolean }
  session: { id: number; second_factor_at: Date | null; expires_at: Date }
}

/** As `/get-session` answers it. */
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
}

export class SignIn {
  readonly #auth: BetterAuth
  readonly #db: Db
  readonly #issuer: Issuer

  constructor({ auth, db, issuer }: SignInOptions) {
    this.#auth = auth
    this.#db = db
    this.#issuer = issuer
  }

  async withPassword(
    browser: Browser,
    email: string,
    password: string,
  ): Promise<Answer<{ second_factor_required: boolean }>> {
    const { body, cookies } = await this.#call('/sign-in/email', browser, { email, password })
    return { body: { second_factor_required: body['twoFactorRedirect'] === true }, cookies }
  }

  /** Completes a sign-in; in a session that set up an authenticator, confirms that it works. */
  async withTotp(browser: Browser, code: string): Promise<Answer<null>> {
    const signedIn = await this.#signedIn(browser)
    // Better Auth counts no failures where there is a session, so none but the one that set it up may guess.
    if (signedIn?.user.second_factor_enabled) throw alreadySignedIn()
    const { cookies } = await this.#call('/two-factor/verify-totp', browser, { code })
    if (signedIn) await this.#db.transaction((tx) => deletePasswordOnlySessions(tx, signedIn.user.id))
    return { body: null, cookies }
  }

  async withBackupCode(browser: Browser, code: string): Promise<Answer<null>> {
    if (await this.#signedIn(browser)) throw alreadySignedIn()
    const { cookies } = await this.#call('/two-factor/verify-backup-code', browser, { code })
    return { body: null, cookies }
  }

  async signOut(browser: Browser): Promise<Answer<null>> {
    const { cookies } = await this.#call('/sign-out', browser, {})
    return { body: null, cookies }
  }

  /** Who is signed in; the session's end moves on while it is used. */
  async current(browser: Browser): Promise<Answer<SignedIn>> {
    const { body, cookies } = await this.#call('/get-session', browser)
    const session = body['session'] as BetterAuthSession | undefined
    if (!session) throw nobodySignedIn()
    const user = await this.#db.read((tx) => findSignInUser(tx, { id: Number(session.userId) }))
    if (!user?.is_active) throw nobodySignedIn()
    return {
      cookies,
      body: {
        user: {
          id: user.id,
          email: user.email,
          name: user.name,
          role: user.role,
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

  async drawToken(browser: Browser): Promise<Answer<AccessToken>> {
    const { body, cookies } = await this.current(browser)
    if (body.user.role === 'admin' && body.session.second_factor_at === null) {
      throw new PosternError('unauthenticated', secondFactorNeeded)
    }
    return { body: await this.#sign(body.user.id, body.session.id), cookies }
  }

  /** For a person at the server's own shell, who could read the database anyway: no session behind it. */
  async shellToken(
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

  async endSession(browser: Browser, sessionId: number): Promise<Answer<null>> {
    const { body, cookies } = await this.current(browser)
    const ended = await this.#db.transaction((tx) => deleteSession(tx, body.user.id, sessionId))
    if (!ended) throw new PosternError('not_found', 'You have no such session.')
    return { body: null, cookies }
  }

  /** Every other session of the user ends with the old password. */
  async changePassword(
    browser: Browser,
    currentPassword: string,
    newPassword: string,
  ): Promise<Answer<null>> {
    const { body } = await this.current(browser)
    if (body.user.second_factor_enabled && body.session.second_factor_at === null) {
      throw new PosternError('unauthenticated', secondFactorNeeded)
    }
    const { cookies } = await this.#call('/change-password', browser, {
      currentPassword,
      newPassword,
      revokeOtherSessions: true,
    })
    await this.#db.transaction((tx) => deleteChallenges(tx, body.user.id))
    return { body: null, cookies }
  }

  async startTotp(
    browser: Browser,
    password: string,
  ): Promise<Answer<{ totp_uri: string; backup_codes: string[] }>> {
    await this.current(browser)
    const { body, cookies } = await this.#call('/two-factor/enable', browser, { password })
    return {
      body: { totp_uri: body['totpURI'] as string, backup_codes: body['backupCodes'] as string[] },
      cookies,
    }
  }

  /** For an invited person without an account: account, password and membership, all or nothing. */
  async join({ token, name, password }: { token: string; name: string; password: string }) {
    // Whoever has no invitation is told before a password is hashed, which takes a tenth of a second.
    await this.#db.rehearse((tx) => createInvitedUser(tx, token, name))
    const context = await this.#auth.$context
    const hash = await context.password.hash(password)
    const member = await this.#db.transaction(async (tx) => {
      const userId = await createInvitedUser(tx, token, name)
      await insertPassword(tx, userId, hash)
      return acceptInvitation(tx, token, userId)
    })
    return { body: memberView(member), cookies: [] }
  }

  /** The public halves of the signing keys, as a JWKS lists them. */
  publicKeys(): Promise<JWK[]> {
    return this.#db.read((tx) => listSigningKeys(tx, signingKeyGraceSeconds))
  }

  async #signedIn(browser: Browser): Promise<SignedIn | undefined> {
    try {
      return (await this.current(browser)).body
    } catch (error) {
      if (error instanceof PosternError && error.code === 'unauthenticated') return undefined
      throw error
    }
  }

  async #sign(userId: number, sessionId: number | undefined): Promise<AccessToken> {
    const user = await this.#db.read((tx) => findSignInUser(tx, { id: userId }))
    if (!user?.is_active) throw new PosternError('unauthenticated', 'This user is not active.')
    const { issuer, audience } = this.#issuer
    return signAccessToken(this.#auth, {
      issuer,
      audience,
      userId,
      sessionId,
      generation: user.token_generation,
    })
  }

  /** One of Better Auth's endpoints: a POST with a body, a GET without. */
  async #call(
    path: string,
    browser: Browser,
    body?: Record<string, unknown>,
  ): Promise<Answer<Record<string, unknown>>> {
    const { origin } = new URL(this.#issuer.issuer)
    const headers = new Headers({
      // The signin plane has refused other origins; a program that sends none is no browser to protect.
      origin,
      'content-type': 'application/json',
      [clientAddressHeader]: browser.address,
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
    const answer = ((await response.json().catch(() => null)) ?? {}) as Record<string, unknown>
    if (!response.ok) throw refusal(response, answer)
    return { body: answer, cookies: response.headers.getSetCookie() }
  }
}

const wrongCode = 'The code is wrong or has been used up. Try the next one, or sign in again.'

/** Better Auth's codes in the words of our list. What is not here is not the caller's doing. */
const refusals: Record<
  string,
  [code: 'unauthenticated' | 'validation_failed' | 'already_exists', message: string]
> = {
  INVALID_EMAIL_OR_PASSWORD: ['unauthenticated', 'The email address or the password is wrong.'],
  INVALID_EMAIL: ['validation_failed', '"email" is not an email address.'],
  INVALID_PASSWORD: ['unauthenticated', 'The password is wrong.'],
  PASSWORD_TOO_SHORT: ['validation_failed', 'The new password must have at least 12 characters.'],
  PASSWORD_TOO_LONG: ['validation_failed', 'The new password must have at most 128 characters.'],
  INVALID_CODE: ['unauthenticated', wrongCode],
  INVALID_BACKUP_CODE: ['unauthenticated', wrongCode],
  TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: ['unauthenticated', 'Too many wrong codes. Sign in again.'],
  INVALID_TWO_FACTOR_COOKIE: ['unauthenticated', 'Sign in with email and password first.'],
  TOTP_NOT_ENABLED: ['unauthenticated', 'No second factor is set up. Set one up first.'],
  TOTP_ALREADY_ENABLED: ['already_exists', 'A second factor is already set up.'],
  BACKUP_CODES_NOT_ENABLED: ['unauthenticated', 'No second factor is set up. Set one up first.'],
}

const alreadySignedIn = (): PosternError =>
  new PosternError('already_exists', 'You are signed in already. Sign out before you give a code again.')

const nobodySignedIn = (): PosternError =>
  new PosternError('unauthenticated', 'Nobody is signed in here. Sign in first.')

function refusal(response: Response, answer: Record<string, unknown>): PosternError {
  if (response.status === 429) {
    const retryAfter = Number(response.headers.get('x-retry-after') ?? 900)
    return new PosternError('rate_limited', 'Too many attempts. Wait before you try again.', {
      retryAfterSeconds: retryAfter,
    })
  }
  const code = typeof answer['code'] === 'string' ? answer['code'] : ''
  // Better Auth keeps the cause to itself; the only thing that it does there is to ask the database.
  if (code === 'FAILED_TO_GET_SESSION') {
    return new PosternError(
      'unavailable',
      'The session cannot be looked up at the moment. Try again shortly.',
      {
        retryAfterSeconds: 1,
      },
    )
  }
  const [ours, message] = refusals[code] ?? []
  if (ours === undefined || message === undefined) {
    if (response.status === 401) return nobodySignedIn()
    return new PosternError(
      'internal_error',
      `Better Auth answered ${response.status} ${JSON.stringify(answer)}`,
    )
  }
  return new PosternError(ours, message)
}
