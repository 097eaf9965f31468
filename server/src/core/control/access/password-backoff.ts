/**
 * Backoff for wrong passwords, counted per account across all client addresses. Ten attempts are free. After that, each
 * wrong password delays the next attempt, by one second at first and 15 minutes at most (control.sign_in_delay). The correct
 * password resets the count. Times are from the database clock.
 *
 * An attempt is counted before it is made, and the count is reverted unless the password was wrong, so parallel attempts
 * are counted. An address without an account is counted in the same way, and the responses are identical.
 *
 * An attacker who keeps guessing keeps the account delayed. The owner's browsers are exempt: a browser that has signed in
 * before has a cookie for this account and its own count, which no other browser can increase. The cookie grants no access.
 * https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Db, OneStatement } from '../../../platform/db/db.ts'
import { purgedAtOnce } from '../../../platform/db/purge.ts'
import { PosternError } from '../../../platform/errors.ts'
import {
  countAttempt,
  deleteFailures,
  deleteOldFailures,
  deleteUnknownBeyond,
  secondsToWait,
  uncountAttempt,
} from './password-backoff.sql.ts'

export class PasswordBackoff {
  readonly #db: Db
  readonly #key: Buffer
  readonly #cookieName: string
  readonly #secure: string

  constructor({ db, key, isHttps }: { db: Db; key: Buffer; isHttps: boolean }) {
    this.#db = db
    this.#key = key
    this.#cookieName = isHttps ? '__Secure-postern.device' : 'postern.device'
    this.#secure = isHttps ? 'Secure; ' : ''
  }

  /** Runs `attempt` unless the account is delayed. Returns the device cookie to set after a correct password. */
  async attempt<T>(
    email: string,
    cookies: string | undefined,
    attempt: () => Promise<T>,
  ): Promise<{ result: T; cookie: string }> {
    const account = email.toLowerCase()
    const device = this.#deviceIn(cookies, account)
    const digest = this.#digest(device === undefined ? `account/${account}` : `count/${account}/${device}`)
    await this.#count(digest, account)
    try {
      const result = await attempt()
      await this.#db.transaction((tx) => deleteFailures(tx, digest))
      return { result, cookie: this.#cookieFor(account, device ?? randomBytes(16).toString('base64url')) }
    } catch (error) {
      const isWrong = error instanceof PosternError && error.code === 'unauthenticated'
      if (!isWrong) await this.#db.transaction((tx) => uncountAttempt(tx, digest))
      throw error
    }
  }

  async #count(digest: Buffer, account: string): Promise<void> {
    const wait = await this.#db.transaction(async (tx) =>
      (await countAttempt(tx, digest, account)) ? undefined : secondsToWait(tx, digest),
    )
    if (wait === undefined) return
    throw new PosternError('rate_limited', 'Too many attempts. Try again later.', {
      retryAfterSeconds: wait,
    })
  }

  #deviceIn(cookies: string | undefined, account: string): string | undefined {
    const [, device, proof] =
      new RegExp(`(?:^|; *)${this.#cookieName}=([\\w-]{22})\\.([\\w-]{43})(?:;|$)`).exec(cookies ?? '') ?? []
    if (device === undefined || proof === undefined) return undefined
    const expected = this.#digest(`device/${account}/${device}`)
    return timingSafeEqual(Buffer.from(proof, 'base64url'), expected) ? device : undefined
  }

  #cookieFor(account: string, device: string): string {
    const proof = this.#digest(`device/${account}/${device}`).toString('base64url')
    return `${this.#cookieName}=${device}.${proof}; Max-Age=${cookieSeconds}; Path=/v1/auth; HttpOnly; ${this.#secure}SameSite=Strict`
  }

  #digest(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest()
  }
}

const cookieSeconds = 180 * 24 * 60 * 60

/** Derived from the newest session secret. A new secret resets all counts. */
export const backoffKeyOf = ([newest]: readonly { value: string }[]): Buffer =>
  Buffer.from(hkdfSync('sha256', newest?.value ?? '', '', 'postern sign-in backoff', 32))

/**
 * The maximum number of rows for addresses without an account. To create a row, an attacker must wait for one password hash.
 */
const defaultUnknownKept = 100_000

export const purgeFailures = async (tx: OneStatement, unknownKept = defaultUnknownKept): Promise<number> =>
  Math.max(
    await deleteOldFailures(tx, purgedAtOnce),
    await deleteUnknownBeyond(tx, unknownKept, purgedAtOnce),
  )
