/**
 * Calls of Better Auth's endpoints by name, within the process. Endpoints that check a password are subject to the hashing
 * slots and to the account's backoff.
 */
import { translateFailure } from '../../../platform/db/failures.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type BetterAuth, clientAddressHeader, requestIdHeader, userIdHeader } from './better-auth.ts'
import type { Browser } from './browser.ts'
import { HashingSlots } from './hashing-slots.ts'
import type { PasswordBackoff } from './password-backoff.ts'
import { refusalOf } from './sign-in-refusals.ts'

/** The response body and the cookies to set. */
export interface SignInResponse<T> {
  body: T
  cookies: string[]
}

type JsonResponse = SignInResponse<Record<string, unknown>>

export interface BetterAuthCallsOptions {
  auth: BetterAuth
  /** The installation's own origin. */
  origin: string
  backoff: PasswordBackoff
  slots?: HashingSlots
}

export class BetterAuthCalls {
  readonly #auth: BetterAuth
  readonly #origin: string
  readonly #backoff: PasswordBackoff
  readonly #slots: HashingSlots

  constructor({ auth, origin, backoff, slots = new HashingSlots() }: BetterAuthCallsOptions) {
    this.#auth = auth
    this.#origin = origin
    this.#backoff = backoff
    this.#slots = slots
  }

  async hash(address: string, password: string): Promise<string> {
    const { password: hashing } = await this.#auth.$context
    return this.#slots.run(address, () => hashing.hash(password))
  }

  /** The statement with which Better Auth reads a user's accounts, for no user. */
  async findNoAccounts(): Promise<void> {
    const { internalAdapter } = await this.#auth.$context
    await internalAdapter.findAccounts('0')
  }

  /** Rejects a wrong password. */
  async verifyPassword(
    browser: Browser,
    email: string,
    { hash, password }: { hash: string; password: string },
  ): Promise<void> {
    const { password: hashing } = await this.#auth.$context
    await this.withBackoff(browser, email, async () => {
      if (await hashing.verify({ hash, password })) return { body: {}, cookies: [] }
      throw new PosternError('unauthenticated', 'The password is wrong.')
    })
  }

  /** Calls an endpoint that checks a password. */
  callWithPassword(
    path: string,
    browser: Browser,
    email: string,
    body: Record<string, unknown>,
    userId?: number,
  ): Promise<JsonResponse> {
    return this.withBackoff(browser, email, () => this.call(path, browser, body, userId))
  }

  async withBackoff(
    browser: Browser,
    email: string,
    attempt: () => Promise<JsonResponse>,
  ): Promise<JsonResponse> {
    const { result, cookie } = await this.#slots.run(browser.address, () =>
      this.#backoff.attempt(storable(email), browser.cookie, attempt),
    )
    return { body: result.body, cookies: [...result.cookies, cookie] }
  }

  /** Calls a Better Auth endpoint: POST with a body, GET without. */
  async call(
    path: string,
    browser: Browser,
    body?: Record<string, unknown>,
    userId?: number,
  ): Promise<JsonResponse> {
    const headers = new Headers({
      // The signin plane has already rejected other origins. A client that sends no Origin is not a browser.
      origin: this.#origin,
      'content-type': 'application/json',
      [clientAddressHeader]: browser.address,
      [requestIdHeader]: browser.requestId,
      ...(userId === undefined ? {} : { [userIdHeader]: String(userId) }),
    })
    if (browser.cookie !== undefined) headers.set('cookie', browser.cookie)
    if (browser.userAgent !== undefined) headers.set('user-agent', browser.userAgent)
    const request = new Request(new URL(path, this.#origin), {
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
export const storable = (email: string): string => email.replaceAll('\0', '\uFFFD')
