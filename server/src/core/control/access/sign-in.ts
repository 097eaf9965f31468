import type { JWK } from 'jose'
import type { Db } from '../../../platform/db/db.ts'
import { translateFailure } from '../../../platform/db/failures.ts'
import { PosternError, UsageError } from '../../../platform/errors.ts'
import { activityPage, recordProjectActivity, recordUserActivity } from '../activity/activity.ts'
import { acceptInvitation, createInvitedUser } from '../members/invitations.ts'
import { memberActivity, memberView } from '../members/members.ts'
import {
  deleteChallenges,
  deletePasswordOnlySessions,
  deleteResets,
  findSignInUser,
  insertPassword,
  listSessions,
  listSigningKeys,
} from './access.sql.ts'
import { secondFactorNeeded } from './bearer.ts'
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
import { requestReset, resetPassword } from './password-reset.ts'
import { withSettledPassword } from './settled-password.ts'
import { entryOf, SignInRecords } from './sign-in-records.ts'
import { alreadySignedIn, notSignedIn, refusalOf } from './sign-in-refusals.ts'

/**
 * Signing in with email, password and TOTP, and what a session is good for.
 *
 * A session is a cookie that only the signin plane reads; everything else takes the ten-minute access
 * tokens drawn from it. An administrator's token is drawn only from a session that was opened with a second
 * factor. Ending a session ends the tokens drawn from it at once: they carry its id, and it is looked up.
 */

export type { Browser }

/** What goes back, with the cookies to set. */
export interface SignInResponse<T> {
  body: T
  cookies: string[]
}

export interface SignInResult {
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
  backoff: PasswordBackoff
  /** Whether links to set a new password can be mailed. */
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
    const who = { email: email.toLowerCase() }
    const { body, cookies } = await this.#tried(browser, email, () =>
      withSettledPassword(this.#db, storable(who.email), () =>
        this.#call('/sign-in/email', browser, { email, password }),
      ),
    ).catch(this.#records.orFailed(browser, 'auth.sign-in', who, 'password'))
    const second_factor_required = body['twoFactorRedirect'] === true
    await this.#records.signedIn(browser, who, 'password', second_factor_required)
    return { body: { second_factor_required }, cookies }
  }

  /** Completes a sign-in; in a session that set up an authenticator, confirms that it works. */
  async withTotp(browser: Browser, code: string): Promise<SignInResponse<null>> {
    const signedIn = await this.#signedIn(browser)
    // Better Auth counts no failures where there is a session, so none but the one that set it up may guess.
    if (signedIn?.user.second_factor_enabled) throw alreadySignedIn()
    const who = signedIn?.user ?? (await this.#records.challenged(browser))
    const { body, cookies } = await this.#call(
      '/two-factor/verify-totp',
      browser,
      { code },
      signedIn?.user.id,
    ).catch(this.#records.orFailed(browser, 'auth.sign-in', who, 'totp'))
    if (!signedIn) await this.#records.signedIn(browser, userIn(body), 'totp')
    if (signedIn) await this.#db.transaction((tx) => deletePasswordOnlySessions(tx, signedIn.user.id))
    return { body: null, cookies }
  }

  async withBackupCode(browser: Browser, code: string): Promise<SignInResponse<null>> {
    if (await this.#signedIn(browser)) throw alreadySignedIn()
    const who = await this.#records.challenged(browser)
    const { body, cookies } = await this.#call('/two-factor/verify-backup-code', browser, { code }).catch(
      this.#records.orFailed(browser, 'auth.sign-in', who, 'backup_code'),
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

  /** Who is signed in; the session's end moves on while it is used. */
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

  async drawToken(browser: Browser): Promise<SignInResponse<AccessToken>> {
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

  async endSession(browser: Browser, sessionId: number): Promise<SignInResponse<null>> {
    const { body, cookies } = await this.current(browser)
    const ended = await this.#records.endSession(browser, 'auth.end-session', body.user, sessionId)
    if (!ended) throw new PosternError('not_found', 'You have no such session.')
    return { body: null, cookies }
  }

  /** Every other session of the user ends with the old password. */
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
      this.#records.orFailed(browser, 'auth.change-password', body.user, 'password'),
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
    }).catch(this.#records.orFailed(browser, 'auth.set-up-totp', user, 'password'))
    const backup_codes = (body['backupCodes'] as string[]).length
    await this.#records.changed(browser, 'auth.set-up-totp', user, { backup_codes })
    return {
      body: { totp_uri: body['totpURI'] as string, backup_codes: body['backupCodes'] as string[] },
      cookies,
    }
  }

  /** For an invited person without an account: account, password and membership, all or nothing. */
  async join(browser: Browser, { token, name, password }: { token: string; name: string; password: string }) {
    // Whoever has no invitation is told before a password is hashed, which takes a tenth of a second.
    await this.#db.dryRun((tx) => createInvitedUser(tx, token, name))
    const hash = await this.#hash(browser.address, password)
    const member = await this.#db.transaction(async (tx) => {
      const userId = await createInvitedUser(tx, token, name)
      await insertPassword(tx, userId, hash)
      const member = await acceptInvitation(tx, token, userId)
      const change = { resource: 'member', id: member.id, before: null, after: memberActivity(member) }
      const entry = entryOf(browser, 'auth.join', { id: userId, email: member.email }, change)
      await recordProjectActivity(tx, member.project_id, entry)
      await recordUserActivity(tx, userId, entry)
      return member
    })
    return { body: memberView(member), cookies: [] }
  }

  /** One answer for every address. The link is mailed by the worker, where there is an account. */
  async forgotPassword({ address }: Browser, email: string): Promise<SignInResponse<null>> {
    if (!this.#mailsResets) {
      throw new PosternError(
        'not_found',
        'This installation mails no links. Ask its operator for a new password.',
      )
    }
    await requestReset(this.#db, email, address)
    return { body: null, cookies: [] }
  }

  /** Opens no session: the second factor is asked for at the sign-in that follows. */
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

  /** The public halves of the signing keys, as a JWKS lists them. */
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

  async #hash(address: string, password: string): Promise<string> {
    const { password: hashing } = await this.#auth.$context
    return this.#slots.run(address, () => hashing.hash(password))
  }

  /** One that checks the password of an account: it waits for its turn, and for the account's backoff. */
  #callWithPassword(
    path: string,
    browser: Browser,
    email: string,
    body: Record<string, unknown>,
    userId?: number,
  ): Promise<SignInResponse<Record<string, unknown>>> {
    return this.#tried(browser, email, () => this.#call(path, browser, body, userId))
  }

  async #tried(
    browser: Browser,
    email: string,
    attempt: () => Promise<SignInResponse<Record<string, unknown>>>,
  ): Promise<SignInResponse<Record<string, unknown>>> {
    const { answer, cookie } = await this.#slots.run(browser.address, () =>
      this.#backoff.attempt(storable(email), browser.cookie, attempt),
    )
    return { body: answer.body, cookies: [...answer.cookies, cookie] }
  }

  /** One of Better Auth's endpoints: a POST with a body, a GET without. */
  async #call(
    path: string,
    browser: Browser,
    body?: Record<string, unknown>,
    userId?: number,
  ): Promise<SignInResponse<Record<string, unknown>>> {
    const { origin } = new URL(this.#issuer.issuer)
    const headers = new Headers({
      // The signin plane has refused other origins; a program that sends none is no browser to protect.
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
    const answer = ((await response.json().catch(() => null)) ?? {}) as Record<string, unknown>
    if (!response.ok) throw refusalOf(response, answer)
    return { body: answer, cookies: response.headers.getSetCookie() }
  }
}

/** PostgreSQL takes no NUL, not even in a question; Better Auth refuses it afterwards, as no address. */
const storable = (email: string): string => email.replaceAll('\0', '\uFFFD')

/** The user whom one of Better Auth's answers names. */
function userIn({ user }: Record<string, unknown>): { id: number } {
  const id = Number((user as { id?: unknown } | undefined)?.id)
  if (!Number.isSafeInteger(id)) throw new Error('Better Auth named no user')
  return { id }
}
