/**
 * Passkeys (WebAuthn). A passkey that verified its user, with a PIN or a fingerprint, proves two factors: possession and
 * knowledge or biometrics. Without that it proves one, and the authenticator's code is required if the user has one
 * (better-auth.ts). A passkey names its account, so a sign-in needs no address and reveals nothing about addresses.
 */
import type { Db } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { plainName } from '../../shared/text.ts'
import { recordUserActivity } from '../activity/activity.ts'
import type { UserOperation } from './account-changes.ts'
import type { BetterAuthCalls, SignInResponse } from './better-auth-calls.ts'
import type { Browser } from './browser.ts'
import { canSignIn, lockUser } from './external-sign-in.sql.ts'
import { countPasskeys, deletePasskey, findPasskeyUser, listPasskeys, renamePasskey } from './passkeys.sql.ts'
import type { SignIn } from './sign-in.ts'
import { entryOf, type SignInRecords } from './sign-in-records.ts'

const perUser = 20

export interface PasskeysOptions {
  db: Db
  calls: BetterAuthCalls
  records: SignInRecords
  signIn: SignIn
  /** The issuers at which people can sign in. */
  issuers: readonly string[]
}

/** As the browser returns it (WebAuthn `PublicKeyCredential.toJSON`). */
type CredentialJson = { id: string } & Record<string, unknown>

export class Passkeys {
  readonly #db: Db
  readonly #calls: BetterAuthCalls
  readonly #records: SignInRecords
  readonly #signIn: SignIn
  readonly #issuers: readonly string[]

  constructor({ db, calls, records, signIn, issuers }: PasskeysOptions) {
    this.#db = db
    this.#calls = calls
    this.#records = records
    this.#signIn = signIn
    this.#issuers = issuers
  }

  async list(browser: Browser) {
    const { user } = (await this.#signIn.current(browser)).body
    const rows = await this.#db.read((tx) => listPasskeys(tx, user.id))
    const data = rows.map(({ created_at, ...row }) => ({ ...row, created_at: created_at.toISOString() }))
    return { body: { data }, cookies: [] }
  }

  /** The options for the browser. The challenge is valid for five minutes, for this user and this browser. */
  async startAdding(browser: Browser, password: string | undefined) {
    const { user } = await this.#signIn.reauthenticated(browser, 'auth.add-passkey', password)
    if ((await this.#db.read((tx) => countPasskeys(tx, user.id))) >= perUser) {
      throw new PosternError(
        'limit_exceeded',
        `An account can have at most ${perUser} passkeys. Delete one first.`,
      )
    }
    const { body, cookies } = await this.#calls.call('/passkey/generate-register-options', browser)
    return { body: { options: body }, cookies }
  }

  async add(browser: Browser, { name, credential }: { name: string; credential: CredentialJson }) {
    const { user } = await this.#signIn.withSecondFactor(browser)
    const shown = plainName(name, 'name')
    const { body, cookies } = await this.#calls.call(
      '/passkey/verify-registration',
      browser,
      { name: shown, response: credential },
      user.id,
    )
    const id = Number(body['id'])
    return { body: { id }, cookies }
  }

  rename(browser: Browser, id: number, name: string): Promise<SignInResponse<null>> {
    const shown = plainName(name, 'name')
    return this.#change(browser, 'auth.rename-passkey', id, (tx, userId) =>
      renamePasskey(tx, userId, id, shown),
    )
  }

  delete(browser: Browser, id: number): Promise<SignInResponse<null>> {
    return this.#change(browser, 'auth.delete-passkey', id, async (tx, userId) => {
      await lockUser(tx, userId)
      if (!(await deletePasskey(tx, userId, id))) return false
      if (!(await canSignIn(tx, userId, this.#issuers))) {
        throw new PosternError(
          'in_use',
          'This is your only way to sign in. Set a password before you delete it.',
        )
      }
      return true
    })
  }

  async #change(
    browser: Browser,
    operation: UserOperation,
    id: number,
    apply: (tx: Parameters<typeof renamePasskey>[0], userId: number) => Promise<boolean>,
  ): Promise<SignInResponse<null>> {
    const { user } = await this.#signIn.withSecondFactor(browser)
    await this.#db.transaction(async (tx) => {
      if (!(await apply(tx, user.id)))
        throw new PosternError('not_found', 'You have no passkey with this id.')
      const change = { resource: 'passkey', id, before: null, after: null }
      await recordUserActivity(tx, user.id, entryOf(browser, operation, user, change))
    })
    return { body: null, cookies: [] }
  }

  /** The options do not depend on an account. */
  async startSignIn(browser: Browser) {
    // Without the cookie of a session, whose user's passkeys Better Auth would list.
    const { body, cookies } = await this.#calls.call('/passkey/generate-authenticate-options', {
      ...browser,
      cookie: undefined,
    })
    return { body: { options: body }, cookies }
  }

  async signIn(
    browser: Browser,
    credential: CredentialJson,
  ): Promise<SignInResponse<{ second_factor_required: boolean }>> {
    const id = await this.#db.read((tx) => findPasskeyUser(tx, credential.id))
    const userKey = id === undefined ? undefined : { id }
    const { body, cookies } = await this.#calls
      .call('/passkey/verify-authentication', browser, { response: credential })
      .catch(this.#records.recordFailure(browser, 'auth.sign-in', userKey, 'passkey'))
    const second_factor_required = body['twoFactorRedirect'] === true
    if (userKey) await this.#records.signedIn(browser, userKey, 'passkey', second_factor_required)
    return { body: { second_factor_required }, cookies }
  }
}
