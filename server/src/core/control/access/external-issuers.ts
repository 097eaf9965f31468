/**
 * The external OpenID Connect issuers at which people sign in with the browser: the authorization code flow with PKCE
 * (RFC 7636), by openid-client.
 *
 * Requests go through the SSRF guard, because an issuer's metadata names the addresses. Metadata is cached per configured
 * issuer, so the caches cannot grow. The library caches the keys with the metadata.
 */
import * as openid from 'openid-client'
import { type Dispatcher, request } from 'undici'
import type { Resolver } from '../../../platform/net/dns.ts'
import { createNetGuard } from '../../../platform/net/net-guard.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'

/** An issuer at which people sign in with the browser. */
export interface SignInIssuer {
  /** In paths. */
  id: string
  /** On the button. */
  label: string
  /** Exactly as in its tokens. */
  issuer: string
  clientId: string
  clientSecret: string
  /** The values of the claims `acr` and `amr` that prove a second factor. */
  secondFactorAcr: readonly string[]
  secondFactorAmr: readonly string[]
  /** Whether people without an account can sign up here, if sign-up is on. The issuer's word about an address is then trusted. */
  canSignUp: boolean
  /** Addresses of the issuer that are not global. */
  privateNetworks: readonly string[]
  /** Trusted certificates (PEM) in addition to the default ones. */
  ca: string | undefined
}

/** What the browser brings to the issuer, and what must come back. */
export interface FlowSecrets {
  state: string
  nonce: string
  codeVerifier: string
}

export interface Identity {
  issuer: string
  /** Whether the issuer may create an account. */
  canSignUp: boolean
  subject: string
  /** When the issuer authenticated the person. Null if it does not say. */
  authenticatedAt: Date | null
  /** The same if the issuer verified a second factor, according to the settings. */
  secondFactorAt: Date | null
  /** The claims about the person, from the issuer's userinfo endpoint if they are not in the token. */
  profile(): Promise<Profile>
}

export interface Profile {
  email: string | undefined
  isEmailVerified: boolean
  name: string | undefined
}

/** `cancelled`: the person did not want to sign in. `refused`: a check failed. */
export class IssuerFailure extends Error {
  readonly kind: 'cancelled' | 'refused' | 'unavailable'

  constructor(kind: IssuerFailure['kind'], cause?: unknown) {
    super(`sign-in at an issuer: ${kind}`, { cause })
    this.kind = kind
  }
}

// jose and the library reject RSA keys below 2,048 bits.
const algorithms = ['EdDSA', 'Ed25519', 'ES256', 'ES384', 'RS256', 'PS256']
const maxResponseBytes = 256 * 1024
const requestTimeoutSeconds = 10
const partTimeoutMs = 5_000
const freshMs = 60 * 60_000
/** While the issuer does not respond, the old metadata stays in use. */
const staleMs = 24 * 60 * 60_000
const cooldownMs = 5_000
/** Requests `auth_time`, and a new authentication of a person whose session at the issuer is older than ours can be. */
const maxAgeSeconds = 12 * 60 * 60
/** For a fresh authentication. Shorter than the time for which a second factor counts as recent. */
const freshAgeSeconds = 5 * 60
const clockSkewSeconds = 60

export interface ExternalIssuersOptions {
  issuers: readonly SignInIssuer[]
  publicUrl: URL
  resolver: Resolver
  log: Logger
}

export class ExternalIssuers {
  readonly #clients: ReadonlyMap<string, IssuerClient>

  constructor({ issuers, publicUrl, resolver, log }: ExternalIssuersOptions) {
    this.#clients = new Map(
      issuers.map((issuer) => [issuer.id, new IssuerClient(issuer, publicUrl, resolver, log)]),
    )
  }

  find(id: string): IssuerClient | undefined {
    return this.#clients.get(id)
  }

  get all(): IssuerClient[] {
    return [...this.#clients.values()]
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((client) => client.close()))
  }
}

export class IssuerClient {
  readonly settings: SignInIssuer
  /** Fixed: it does not depend on the request. */
  readonly redirectUri: string
  readonly #agent: Dispatcher
  readonly #log: Logger
  #known: { configuration: openid.Configuration; loadedAt: number } | undefined
  #loading: Promise<openid.Configuration> | undefined
  #failed: { at: number; error: unknown } | undefined

  constructor(settings: SignInIssuer, publicUrl: URL, resolver: Resolver, log: Logger) {
    const { issuer, privateNetworks, ca } = settings
    this.settings = settings
    this.redirectUri = `${publicUrl.origin}/v1/auth/issuers/${settings.id}/callback`
    this.#log = log
    this.#agent = createNetGuard({
      resolver,
      allowedNetworks: privateNetworks,
      ports: [443, Number(new URL(issuer).port || 443)],
      ...(ca !== undefined && { ca }),
    }).agent({
      connectTimeoutMs: partTimeoutMs,
      headersTimeoutMs: partTimeoutMs,
      bodyTimeoutMs: partTimeoutMs,
      connectionsPerOrigin: 10,
    })
  }

  /** Where to send the browser. `isFresh`: the person must authenticate again. */
  async authorizationUrl(
    { state, nonce, codeVerifier }: FlowSecrets,
    { isFresh, needsSecondFactor }: { isFresh: boolean; needsSecondFactor: boolean },
  ): Promise<string> {
    const configuration = await this.#configuration()
    const { secondFactorAcr } = this.settings
    const url = openid.buildAuthorizationUrl(configuration, {
      redirect_uri: this.redirectUri,
      scope: 'openid email profile',
      state,
      nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
      max_age: String(isFresh ? freshAgeSeconds : maxAgeSeconds),
      ...(isFresh && { prompt: 'login' }),
      ...(needsSecondFactor && secondFactorAcr.length > 0 && { acr_values: secondFactorAcr.join(' ') }),
    })
    return url.href
  }

  /** Exchanges the code in the query of the callback for the person's identity. */
  async identify(query: string, { state, nonce, codeVerifier }: FlowSecrets): Promise<Identity> {
    try {
      const configuration = await this.#configuration()
      const tokens = await openid.authorizationCodeGrant(
        configuration,
        new URL(`${this.redirectUri}?${query}`),
        {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        },
      )
      const claims = tokens.claims()
      // OpenID Connect Core §2: at most 255 ASCII characters.
      if (!claims || !/^[\x20-\x7e]{1,255}$/.test(claims.sub)) throw new IssuerFailure('refused')
      const authenticatedAt = timeOf(claims.auth_time)
      return {
        issuer: this.settings.issuer,
        canSignUp: this.settings.canSignUp,
        subject: claims.sub,
        authenticatedAt,
        secondFactorAt: this.#showsSecondFactor(claims) && isRecent(authenticatedAt) ? authenticatedAt : null,
        profile: () => this.#profile(configuration, tokens.access_token, claims),
      }
    } catch (error) {
      throw this.#failureOf(error)
    }
  }

  /** Loads the metadata. Throws if the issuer cannot be used. */
  async check(): Promise<void> {
    await this.#configuration()
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }

  /** Denied unless the operator configured the issuer's values. */
  #showsSecondFactor({ acr, amr }: openid.IDToken): boolean {
    const { secondFactorAcr, secondFactorAmr } = this.settings
    return (
      (typeof acr === 'string' && secondFactorAcr.includes(acr)) ||
      (Array.isArray(amr) &&
        amr.some((method) => typeof method === 'string' && secondFactorAmr.includes(method)))
    )
  }

  async #profile(
    configuration: openid.Configuration,
    accessToken: string,
    claims: openid.IDToken,
  ): Promise<Profile> {
    const isComplete = claims['email'] !== undefined || !configuration.serverMetadata().userinfo_endpoint
    try {
      const found: Record<string, unknown> = isComplete
        ? claims
        : await openid.fetchUserInfo(configuration, accessToken, claims.sub)
      const { email, email_verified, name } = found
      return {
        email: typeof email === 'string' ? email : undefined,
        isEmailVerified: email_verified === true,
        name: typeof name === 'string' ? name : undefined,
      }
    } catch (error) {
      throw this.#failureOf(error)
    }
  }

  async #configuration(): Promise<openid.Configuration> {
    const known = this.#known
    const age = known ? performance.now() - known.loadedAt : Number.POSITIVE_INFINITY
    if (known && age < freshMs) return known.configuration
    try {
      return await this.#load()
    } catch (error) {
      if (known && age < staleMs) return known.configuration
      throw error instanceof IssuerFailure ? error : new IssuerFailure('unavailable', error)
    }
  }

  /** Concurrent requests share one attempt, and a failed attempt is not repeated at once. */
  #load(): Promise<openid.Configuration> {
    if (this.#loading !== undefined) return this.#loading
    if (this.#failed && performance.now() - this.#failed.at < cooldownMs) {
      return Promise.reject(this.#failed.error)
    }
    this.#loading = this.#discover()
      .then((configuration) => {
        this.#known = { configuration, loadedAt: performance.now() }
        this.#failed = undefined
        return configuration
      })
      .catch((error: unknown) => {
        this.#failed = { at: performance.now(), error }
        const { issuer } = this.settings
        this.#log.warn({ issuer, ...describe(error) }, 'the metadata of an issuer could not be loaded')
        throw error
      })
      .finally(() => {
        this.#loading = undefined
      })
    return this.#loading
  }

  async #discover(): Promise<openid.Configuration> {
    const { issuer, clientId, clientSecret } = this.settings
    const options = { [openid.customFetch]: this.#fetch, timeout: requestTimeoutSeconds }
    const found = await openid.discovery(new URL(issuer), clientId, clientSecret, undefined, options)
    const { supportsPKCE: _, ...metadata } = found.serverMetadata()
    // The library compares the URLs, which are equal with and without a final slash. The tokens are compared exactly.
    if (metadata.issuer !== issuer) {
      throw new Error(`the issuer calls itself ${JSON.stringify(metadata.issuer)}, not "${issuer}"`)
    }
    const { authorization_endpoint, token_endpoint, jwks_uri } = metadata
    if (!authorization_endpoint || !token_endpoint || !jwks_uri) {
      throw new Error('the metadata lacks authorization_endpoint, token_endpoint or jwks_uri')
    }
    const offered = metadata.id_token_signing_alg_values_supported ?? ['RS256']
    const id_token_signing_alg_values_supported = offered.filter((name) => algorithms.includes(name))
    if (id_token_signing_alg_values_supported.length === 0) {
      throw new Error(`the issuer signs with none of ${algorithms.join(', ')}`)
    }
    // OpenID Connect Discovery §3: the default is client_secret_basic.
    const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const configuration = new openid.Configuration(
      { ...metadata, id_token_signing_alg_values_supported } as openid.ServerMetadata,
      clientId,
      { client_secret: clientSecret },
      methods.includes('client_secret_basic')
        ? openid.ClientSecretBasic(clientSecret)
        : openid.ClientSecretPost(clientSecret),
    )
    configuration[openid.customFetch] = this.#fetch
    configuration.timeout = requestTimeoutSeconds
    // Without this, the library relies on TLS and does not verify the token's signature (OpenID Connect Core §3.1.3.7).
    openid.enableNonRepudiationChecks(configuration)
    return configuration
  }

  readonly #fetch: openid.CustomFetch = async (url, { method, headers, body, signal }) => {
    try {
      const answer = await request(url, {
        dispatcher: this.#agent,
        method: method as Dispatcher.HttpMethod,
        headers,
        body:
          body instanceof URLSearchParams ? body.toString() : ((body as string | null | undefined) ?? null),
        signal: signal ?? null,
      })
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of answer.body as AsyncIterable<Buffer>) {
        size += chunk.length
        if (size > maxResponseBytes) throw new Error(`the response exceeds ${maxResponseBytes} bytes`)
        chunks.push(chunk)
      }
      const type = answer.headers['content-type']
      return new Response(size === 0 ? null : Buffer.concat(chunks), {
        status: answer.statusCode,
        headers: typeof type === 'string' ? { 'content-type': type } : {},
      })
    } catch (error) {
      throw new IssuerFailure('unavailable', error)
    }
  }

  /** The library's errors contain tokens and claims, so only their codes are logged. */
  #failureOf(error: unknown): IssuerFailure {
    const cause = error instanceof Error ? error.cause : undefined
    const failure =
      [error, cause].find((one) => one instanceof IssuerFailure) ?? new IssuerFailure(kindOf(error), error)
    if (failure.kind !== 'cancelled') {
      const { issuer } = this.settings
      this.#log.warn({ issuer, ...describe(error) }, `sign-in at an issuer: ${failure.kind}`)
    }
    return failure
  }
}

function kindOf(error: unknown): IssuerFailure['kind'] {
  if (error instanceof openid.AuthorizationResponseError) {
    return error.error === 'access_denied' ? 'cancelled' : 'refused'
  }
  if (error instanceof openid.ResponseBodyError) return error.status >= 500 ? 'unavailable' : 'refused'
  const { code } = error as { code?: unknown }
  return code === 'OAUTH_TIMEOUT' || code === 'OAUTH_ABORT' ? 'unavailable' : 'refused'
}

/** For logs: without values from responses, which syntax errors quote. */
function describe(error: unknown): { code?: string; error?: string; why: string } {
  const { code, error: name } = error as { code?: unknown; error?: unknown }
  return {
    ...(typeof code === 'string' && { code }),
    ...(typeof name === 'string' && { error: name.slice(0, 100) }),
    why: reasonOf(error),
  }
}

/** Why an issuer cannot be used, for the operator. */
export function reasonOf(error: unknown): string {
  const messages: string[] = []
  for (let one = error; one instanceof Error && !(one instanceof SyntaxError); one = one.cause) {
    if (!(one instanceof IssuerFailure) && one.message !== unclassified) messages.push(one.message)
  }
  return messages.join(': ').slice(0, 300)
}

/** The library's message for an error that is not its own. */
const unclassified = 'something went wrong'

/** The browser can remove `max_age` from the request, and the issuer can ignore it. */
const isRecent = (at: Date | null): boolean =>
  at !== null && Date.now() - at.getTime() <= 1000 * (maxAgeSeconds + clockSkewSeconds)

function timeOf(seconds: unknown): Date | null {
  const now = Date.now() / 1000
  if (typeof seconds !== 'number' || seconds < 0 || seconds > now + clockSkewSeconds) return null
  return new Date(Math.min(seconds, now) * 1000)
}
