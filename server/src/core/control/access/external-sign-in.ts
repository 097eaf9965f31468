/**
 * Signing in at an external OpenID Connect issuer with the browser, and linking the person's login there to an account.
 *
 * A login is identified by (iss, sub) only, never by an address. What a sign-in starts is stored in one row, bound to the
 * browser by a cookie and used once, so a response that another browser started cannot be completed in this one (login
 * CSRF). The session cookie is SameSite=Strict, and browsers do not send it with the issuer's redirect. The row of a link
 * therefore names the session that started it.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Db, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { networkOf } from '../../../platform/http/rate-limit.ts'
import { plainName } from '../../shared/text.ts'
import { recordUserActivity } from '../activity/activity.ts'
import type { UserOperation } from './account-changes.ts'
import { externalSessionPath } from './better-auth.ts'
import type { BetterAuthCalls, SignInResponse } from './better-auth-calls.ts'
import type { Browser } from './browser.ts'
import { signInAddress } from './email.ts'
import { type ExternalIssuers, type Identity, type IssuerClient, IssuerFailure } from './external-issuers.ts'
import {
  canSignIn,
  createExternalUser,
  deleteLogin,
  findLinkedUser,
  hasAccount,
  insertLogin,
  insertStarted,
  listLogins,
  lockSessionUser,
  lockUser,
  type TakenSignIn,
  takeStarted,
} from './external-sign-in.sql.ts'
import type { SignIn } from './sign-in.ts'
import { entryOf, type SignInRecords } from './sign-in-records.ts'
import { countSignUp, type SignUpLimits } from './sign-up.ts'

const validMinutes = 10
const perAccount = 10
/** The maximum number of sign-ins that wait for their browsers, started from one network, and all. */
const perNetwork = 200
const waitingAtMost = 20_000

/** What the page says after the browser has returned. */
export type ExternalResult =
  /** A code of the authenticator is still required. */
  | 'code'
  | 'linked'
  /** The login is linked to an account already. */
  | 'taken'
  | 'too-many'
  | 'cancelled'
  /** The same for every reason, so that it does not reveal whether an account exists. */
  | 'refused'
  | 'second-factor'
  | 'expired'
  | 'unavailable'

export interface ExternalSignInOptions {
  db: Db
  calls: BetterAuthCalls
  records: SignInRecords
  signIn: SignIn
  issuers: ExternalIssuers
  /** Undefined if people cannot sign up. */
  signUp: SignUpLimits | undefined
  isHttps: boolean
}

export interface StartOptions {
  returnTo: string
  /** Whether the person must authenticate again. */
  isFresh: boolean
}

export class ExternalSignIn {
  readonly #db: Db
  readonly #calls: BetterAuthCalls
  readonly #records: SignInRecords
  readonly #signIn: SignIn
  readonly #issuers: ExternalIssuers
  readonly #signUp: SignUpLimits | undefined
  readonly #cookie: { name: string; secure: string }

  constructor({ db, calls, records, signIn, issuers, signUp, isHttps }: ExternalSignInOptions) {
    this.#db = db
    this.#calls = calls
    this.#records = records
    this.#signIn = signIn
    this.#issuers = issuers
    this.#signUp = signUp
    this.#cookie = isHttps
      ? { name: '__Host-postern.issuer', secure: 'Secure; ' }
      : { name: 'postern.issuer', secure: '' }
  }

  /** Returns the address at the issuer to which the browser goes. */
  start(browser: Browser, issuerId: string, options: StartOptions): Promise<SignInResponse<{ url: string }>> {
    return this.#start(browser, issuerId, options, null)
  }

  async startLink(
    browser: Browser,
    issuerId: string,
    { returnTo, password }: { returnTo: string; password: string | undefined },
  ): Promise<SignInResponse<{ url: string }>> {
    const { session } = await this.#signIn.reauthenticated(browser, 'auth.link-login', password)
    return this.#start(browser, issuerId, { returnTo, isFresh: false }, session.id)
  }

  async #start(
    browser: Browser,
    issuerId: string,
    { returnTo, isFresh }: StartOptions,
    sessionId: number | null,
  ): Promise<SignInResponse<{ url: string }>> {
    const client = this.#clientOf(issuerId)
    const [secret, state, nonce, codeVerifier] = [newSecret(), newSecret(), newSecret(), newSecret()]
    // First, because it needs the network if the metadata is not cached.
    const needsSecondFactor = returnTo.startsWith('/console/')
    const url = await client
      .authorizationUrl({ state, nonce, codeVerifier }, { isFresh, needsSecondFactor })
      .catch((error: unknown) => {
        if (!(error instanceof IssuerFailure)) throw error
        throw new PosternError('unavailable', `${client.settings.label} does not respond. Try again later.`, {
          cause: error,
          retryAfterSeconds: 5,
        })
      })
    const before = this.#secretOf(browser)
    await this.#db.transaction((tx) =>
      insertStarted(
        tx,
        {
          stateHash: hashOf(state),
          browserHash: hashOf(secret),
          issuerId,
          nonce,
          codeVerifier,
          returnTo,
          sessionId,
          network: networkOf(browser.address),
        },
        {
          replaced: before === undefined ? undefined : hashOf(before),
          minutes: validMinutes,
          perNetwork,
          all: waitingAtMost,
        },
      ),
    )
    return { body: { url }, cookies: [this.#cookieOf(secret, validMinutes * 60)] }
  }

  /** The browser returns from the issuer with this query. Returns the path to which it goes. */
  async complete(browser: Browser, issuerId: string, query: string): Promise<SignInResponse<string>> {
    const client = this.#clientOf(issuerId)
    const [state, ...others] = new URLSearchParams(query).getAll('state')
    const secret = this.#secretOf(browser)
    const started =
      state === undefined || others.length > 0 || secret === undefined
        ? undefined
        : await this.#db.transaction((tx) => takeStarted(tx, hashOf(state), hashOf(secret), issuerId))
    // The cookie stays, because it may belong to a sign-in that another page of this browser started.
    if (!started || state === undefined) return { body: pathOf('/app/', 'expired'), cookies: [] }
    const { result, cookies } = await this.#finish(browser, client, started, query, state).catch(
      (error: unknown) => ({ result: resultOf(error), cookies: [] }),
    )
    return { body: pathOf(started.return_to, result), cookies: [this.#cookieOf('', 0), ...cookies] }
  }

  async #finish(
    browser: Browser,
    client: IssuerClient,
    { nonce, code_verifier: codeVerifier, session_id }: TakenSignIn,
    query: string,
    state: string,
  ): Promise<{ result: ExternalResult | undefined; cookies: string[] }> {
    const identity = await client.identify(query, { state, nonce, codeVerifier })
    return session_id === null
      ? this.#enter(browser, identity)
      : { result: await this.#link(browser, identity, session_id), cookies: [] }
  }

  async #enter(browser: Browser, identity: Identity) {
    const { issuer, subject, secondFactorAt, authenticatedAt } = identity
    const linked = await this.#db.read((tx) => findLinkedUser(tx, issuer, subject))
    const user = linked ?? (await this.#register(browser, identity))
    if (!user?.is_active) return { result: 'refused' as const, cookies: [] }
    if (user.role === 'admin' && secondFactorAt === null) {
      await this.#records.refused(browser, user, 'issuer')
      return { result: 'second-factor' as const, cookies: [] }
    }
    const { body, cookies } = await this.#calls.call(
      externalSessionPath,
      // The session that the browser has does not matter.
      { ...browser, cookie: undefined },
      { userId: user.id, secondFactorAt, authenticatedAt },
    )
    const isPending = body['twoFactorRedirect'] === true
    await this.#records.signedIn(browser, user, 'issuer', isPending)
    return { result: isPending ? ('code' as const) : undefined, cookies }
  }

  /** Creates an account, if sign-up is on, also for this issuer, and it has verified an address without an account. */
  async #register(browser: Browser, { issuer, subject, profile, canSignUp }: Identity) {
    const limits = this.#signUp
    if (!limits || !canSignUp) return undefined
    const { email: given, isEmailVerified, name } = await profile()
    const email = given === undefined || !isEmailVerified ? undefined : signInAddress(given)
    if (email === undefined) return undefined
    const create = this.#db.transaction(async (tx) => {
      if (await hasAccount(tx, email)) return undefined
      await countSignUp(tx, browser.address, limits)
      const id = await createExternalUser(tx, { issuer, subject, email, name: shownName(name, email) })
      if (id === undefined) return undefined
      const change = { resource: 'account', id, before: null, after: { issuer } }
      await recordUserActivity(tx, id, entryOf(browser, 'auth.sign-up-at-issuer', { id, email }, change))
      return { id, email, role: 'user', is_active: true }
    })
    // The limit applies only to an address without an account, so its response must not differ.
    return create.catch((error: unknown) => {
      if (error instanceof PosternError && error.code === 'rate_limited') return undefined
      throw error
    })
  }

  #link(browser: Browser, { issuer, subject }: Identity, sessionId: number): Promise<ExternalResult> {
    return this.#db.transaction(async (tx) => {
      const user = await lockSessionUser(tx, sessionId)
      if (!user?.is_active) return 'expired'
      await lockUser(tx, user.id)
      if ((await listLogins(tx, user.id)).length >= perAccount) return 'too-many'
      const id = await insertLogin(tx, { issuer, subject, user_id: user.id })
      if (id === undefined) return 'taken'
      await this.#record(tx, browser, 'auth.link-login', user, { id, after: { issuer }, before: null })
      return 'linked'
    })
  }

  async list(browser: Browser) {
    const { user } = (await this.#signIn.current(browser)).body
    const rows = await this.#db.read((tx) => listLogins(tx, user.id))
    const labels = new Map(this.#issuers.all.map(({ settings }) => [settings.issuer, settings.label]))
    const data = rows.map(({ id, issuer, subject, created_at }) => ({
      id,
      label: labels.get(issuer) ?? null,
      issuer,
      subject,
      created_at: created_at.toISOString(),
    }))
    return { body: { data }, cookies: [] }
  }

  async unlink(browser: Browser, id: number, password: string | undefined): Promise<SignInResponse<null>> {
    const operation = 'auth.unlink-login'
    const { user, session } = await this.#signIn.reauthenticated(browser, operation, password)
    await this.#db.transaction(async (tx) => {
      // Another request may have ended the session while the password was being verified.
      if (!(await lockSessionUser(tx, session.id)))
        throw new PosternError('unauthenticated', 'Sign in again.')
      await lockUser(tx, user.id)
      const issuer = await deleteLogin(tx, user.id, id)
      if (issuer === undefined) throw new PosternError('not_found', 'You have no such login with this id.')
      if (!(await this.canSignIn(tx, user.id))) {
        throw new PosternError(
          'in_use',
          'This is your only way to sign in. Set a password or add a passkey before you disconnect it.',
        )
      }
      await this.#record(tx, browser, operation, user, { id, before: { issuer }, after: null })
    })
    return { body: null, cookies: [] }
  }

  canSignIn(tx: Tx, userId: number): Promise<boolean> {
    const issuers = this.#issuers.all.map(({ settings }) => settings.issuer)
    return canSignIn(tx, userId, issuers)
  }

  #record(
    tx: Tx,
    browser: Browser,
    operation: UserOperation,
    user: { id: number; email: string },
    { id, before, after }: { id: number; before: object | null; after: object | null },
  ): Promise<void> {
    const change = { resource: 'external_login', id, before, after }
    return recordUserActivity(tx, user.id, entryOf(browser, operation, user, change))
  }

  #clientOf(issuerId: string): IssuerClient {
    const client = this.#issuers.find(issuerId)
    if (client) return client
    throw new PosternError('not_found', 'There is no issuer with this id.')
  }

  #secretOf({ cookie = '' }: Browser): string | undefined {
    return new RegExp(`(?:^|; *)${this.#cookie.name}=([\\w-]{43})(?:;|$)`).exec(cookie)?.[1]
  }

  /** SameSite=Lax: sent when the issuer redirects the browser here. `__Host-` requires the path `/`. */
  #cookieOf(value: string, seconds: number): string {
    const { name, secure } = this.#cookie
    return `${name}=${value}; Max-Age=${seconds}; Path=/; HttpOnly; ${secure}SameSite=Lax`
  }
}

const newSecret = (): string => randomBytes(32).toString('base64url')

const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest()

/** The browser shows a page, and not the body of a response. */
function resultOf(error: unknown): ExternalResult {
  if (error instanceof IssuerFailure) return error.kind
  if (!(error instanceof PosternError) || error.code === 'internal_error') throw error
  return error.code === 'unauthenticated' ? 'refused' : 'unavailable'
}

/** The result is in the fragment, which browsers do not send. */
const pathOf = (path: string, result: ExternalResult | undefined): string =>
  result === undefined ? path : `${path}#issuer=${result}`

function shownName(name: string | undefined, email: string): string {
  try {
    return plainName(name ?? '', 'name')
  } catch {
    return email.split('@')[0] ?? email
  }
}
