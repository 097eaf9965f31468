/** Authenticator apps and backup codes of signed-in users. */
import { createOTP } from '@better-auth/utils/otp'
import { generateRandomString, symmetricDecrypt, symmetricEncrypt } from 'better-auth/crypto'
import type { Db } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { recordUserActivity } from '../activity/activity.ts'
import { useTotpCode } from './access.sql.ts'
import type { BetterAuth } from './better-auth.ts'
import type { BetterAuthCalls, SignInResponse } from './better-auth-calls.ts'
import type { Browser } from './browser.ts'
import { activateReplacement, lockReplacement, storeReplacement } from './second-factors.sql.ts'
import type { SignIn } from './sign-in.ts'
import { entryOf, type SignInRecords } from './sign-in-records.ts'

export interface SecondFactorsOptions {
  auth: BetterAuth
  db: Db
  calls: BetterAuthCalls
  records: SignInRecords
  signIn: SignIn
}

export class SecondFactors {
  readonly #auth: BetterAuth
  readonly #db: Db
  readonly #calls: BetterAuthCalls
  readonly #records: SignInRecords
  readonly #signIn: SignIn

  constructor({ auth, db, calls, records, signIn }: SecondFactorsOptions) {
    this.#auth = auth
    this.#db = db
    this.#calls = calls
    this.#records = records
    this.#signIn = signIn
  }

  async startTotp(
    browser: Browser,
    password: string,
  ): Promise<SignInResponse<{ totp_uri: string; backup_codes: string[] }>> {
    const { user } = (await this.#signIn.current(browser)).body
    const { body, cookies } = await this.#calls
      .callWithPassword('/two-factor/enable', browser, user.email, { password })
      .catch(this.#records.recordFailure(browser, 'auth.enroll-totp', user, 'password'))
    const backup_codes = (body['backupCodes'] as string[]).length
    await this.#records.changed(browser, 'auth.enroll-totp', user, { backup_codes })
    return {
      body: { totp_uri: body['totpURI'] as string, backup_codes: body['backupCodes'] as string[] },
      cookies,
    }
  }

  /** The current authenticator stays valid until the first code of the new one. Better Auth can only remove it first. */
  async startReplacement(browser: Browser, password: string): Promise<SignInResponse<{ totp_uri: string }>> {
    const operation = 'auth.start-totp-replacement'
    const { user } = await this.#signIn.reauthenticated(browser, operation, password)
    const { secretConfig, appName } = await this.#auth.$context
    const secret = generateRandomString(32)
    const sealed = await symmetricEncrypt({ key: secretConfig, data: secret })
    await this.#db.transaction(async (tx) => {
      if (!(await storeReplacement(tx, user.id, sealed))) throw notSetUp()
    })
    return { body: { totp_uri: createOTP(secret).url(appName, user.email) }, cookies: [] }
  }

  async confirmReplacement(browser: Browser, code: string): Promise<SignInResponse<null>> {
    const { user } = await this.#signIn.withSecondFactor(browser)
    const { secretConfig } = await this.#auth.$context
    await this.#db.transaction(async (tx) => {
      const sealed = await lockReplacement(tx, user.id)
      if (sealed === undefined) {
        throw new PosternError(
          'not_found',
          'No replacement is in progress, or it took too long. Start again.',
        )
      }
      const secret = await symmetricDecrypt({ key: secretConfig, data: sealed })
      const isRight = await createOTP(secret).verify(code)
      // The code must not be accepted again for a sign-in.
      if (!isRight || !(await useTotpCode(tx, user.id, code))) {
        throw new PosternError(
          'unauthenticated',
          'The code is wrong. Enter the current code of the new authenticator.',
        )
      }
      await activateReplacement(tx, user.id)
      const change = { resource: 'account', id: user.id, before: null, after: null }
      await recordUserActivity(tx, user.id, entryOf(browser, 'auth.replace-totp', user, change))
    })
    return { body: null, cookies: [] }
  }

  /** Not for administrators, who need a second factor. */
  async disableTotp(browser: Browser, password: string): Promise<SignInResponse<null>> {
    const { user } = await this.#signIn.withSecondFactor(browser)
    if (user.role === 'admin') {
      throw new PosternError(
        'in_use',
        'Administrators need a second factor. Replace the authenticator instead.',
      )
    }
    if (!user.second_factor_enabled) throw notSetUp()
    const { cookies } = await this.#calls
      .callWithPassword('/two-factor/disable', browser, user.email, { password }, user.id)
      .catch(this.#records.recordFailure(browser, 'auth.disable-totp', user, 'password'))
    return { body: null, cookies }
  }

  /** The old codes become invalid. */
  async renewBackupCodes(
    browser: Browser,
    password: string,
  ): Promise<SignInResponse<{ backup_codes: string[] }>> {
    const operation = 'auth.renew-backup-codes'
    const { user } = await this.#signIn.withSecondFactor(browser)
    if (!user.second_factor_enabled) throw notSetUp()
    const { body, cookies } = await this.#calls
      .callWithPassword('/two-factor/generate-backup-codes', browser, user.email, { password })
      .catch(this.#records.recordFailure(browser, operation, user, 'password'))
    const backup_codes = body['backupCodes'] as string[]
    await this.#records.changed(browser, operation, user, { backup_codes: backup_codes.length })
    return { body: { backup_codes }, cookies }
  }
}

const notSetUp = (): PosternError => new PosternError('not_found', 'No second factor is set up.')
