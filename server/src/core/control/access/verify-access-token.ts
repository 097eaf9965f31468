/**
 * Verifies `Authorization: Bearer <user JWT>` and reads the user from the database.
 *
 * The token only identifies the user. Role, rights and active flag are read on every request, so a demoted, limited or
 * disabled administrator is rejected on the next request, regardless of the claims in the token.
 */
import { errors, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose'
import type { UnscopedDb } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { type Rights, rightsOf } from '../users/wire.ts'
import { findExternalUser, findTokenUser, type TokenSubject } from './access.sql.ts'
import { KeysNotLoaded } from './issuer-keys.ts'
import { accessTokenType, type Issuer } from './issuers.ts'
import { readJwt } from './strict-jwt.ts'

export interface User {
  id: number
  email: string
  name: string
  role: 'admin' | 'user'
  /** Null for users who are not administrators. */
  rights: Rights | null
  /** When the second factor was verified; null if it was not, or if an external issuer does not say. */
  secondFactorAt: Date | null
  hasSecondFactor: boolean
}

export interface Admin extends User {
  role: 'admin'
  rights: Rights
}

export type Authenticate = (authorization: string | undefined) => Promise<User>

export const secondFactorNeeded =
  'Administrators must sign in with two-factor authentication. Set it up if you have not done so yet, then sign in again.'

// jose itself rejects RS256 keys below 2,048 bits (RFC 7518 §3.3).
const algorithms = ['EdDSA', 'ES256', 'RS256']

export function createAuthenticate(issuers: Issuer[], db: UnscopedDb): Authenticate {
  const byName = new Map(issuers.map((issuer) => [issuer.issuer, issuer]))
  const verified = new VerifiedTokens()

  return async (authorization) => {
    const token = bearerOf(authorization)
    if (token === undefined) throw unauthenticated()
    const { claims, issuer } =
      (await verified.find(token)) ?? verified.keep(token, await check(token, byName))
    const user = await db.readOne((tx) =>
      issuer.isOwn
        ? findTokenUser(tx, subjectOf(claims))
        : findExternalUser(tx, issuer.issuer, externalSubjectOf(claims), new Date(claims.iat * 1000)),
    )
    if (!user?.is_active) throw unauthenticated()
    return {
      id: user.id,
      email: user.email,
      name: user.name,
      role: user.role === 'admin' ? 'admin' : 'user',
      rights: rightsOf(user),
      hasSecondFactor: user.has_second_factor,
      secondFactorAt: secondFactorTime(claims, issuer, user.second_factor_at),
    }
  }
}

/**
 * A session has a time. A token without a session was issued on the server's command line, which counts as a second factor. An
 * external issuer renews its tokens without its user, so only the time of authentication counts (RFC 9068 §2.2.1).
 */
function secondFactorTime(claims: VerifiedClaims, { isOwn }: Issuer, ofSession: Date | null): Date | null {
  if (ofSession !== null) return ofSession
  const seconds = isOwn ? (claims['sid'] === undefined ? claims.iat : null) : claims['auth_time']
  return typeof seconds === 'number' && isPlausibleTime(seconds) ? new Date(seconds * 1000) : null
}

interface Verified {
  claims: VerifiedClaims
  issuer: Issuer
  header: JWTHeaderParameters
  /** The key that verified the signature. */
  key: unknown
}

async function check(token: string, issuers: ReadonlyMap<string, Issuer>): Promise<Verified> {
  const jwt = readJwt(token)
  const name = jwt?.payload['iss']
  const issuer = typeof name === 'string' ? issuers.get(name) : undefined
  if (!jwt || !issuer || !hasExpectedType(jwt.header, issuer)) throw unauthenticated()
  return { ...(await verify(token, issuer)), issuer }
}

const maxCachedTokens = 1_000

/**
 * A cache of tokens with a verified signature, oldest first. Verifying a signature costs more than the rest of a request's
 * authentication. The signing key is still looked up on every request. If the key has changed or is gone, the token is
 * verified again.
 */
class VerifiedTokens {
  readonly #verified = new Map<string, Verified>()

  async find(token: string): Promise<Verified | undefined> {
    const known = this.#verified.get(token)
    if (known === undefined) return undefined
    if (known.claims.exp * 1000 > Date.now() && (await keyOf(known)) === known.key) return known
    this.#verified.delete(token)
    return undefined
  }

  keep(token: string, verified: Verified): Verified {
    this.#verified.set(token, verified)
    const [oldest] = this.#verified.keys()
    if (this.#verified.size > maxCachedTokens && oldest !== undefined) this.#verified.delete(oldest)
    return verified
  }
}

async function keyOf({ issuer, header }: Verified): Promise<unknown> {
  try {
    return await issuer.keys(header, unusedJws)
  } catch {
    // The full check below reports the reason.
    return undefined
  }
}

// jose passes this to a key lookup in addition to the header. The lookups here do not use it.
const unusedJws = { payload: '', signature: '' }

export function requireAdministrator(user: User): asserts user is Admin {
  if (!isAdmin(user)) {
    throw new PosternError('admin_required', 'The administrator role is required.')
  }
  // A request to issue a token without a second factor is rejected as well. This check covers users who became
  // administrators afterwards.
  if (!user.hasSecondFactor) throw new PosternError('unauthenticated', secondFactorNeeded)
}

const recentMs = 10 * 60_000

export const isRecentSecondFactor = (at: Date | null): boolean =>
  at !== null && Date.now() - at.getTime() <= recentMs

/** For operations with far-reaching consequences. A stolen token alone is not enough to start one. */
export function requireRecentSecondFactor(at: Date | null): void {
  if (isRecentSecondFactor(at)) return
  throw new PosternError(
    'unauthenticated',
    'This operation requires two-factor authentication within the last 10 minutes. Sign in again, then repeat the request.',
  )
}

const isAdmin = (user: User): user is Admin => user.role === 'admin'

/** A bearer token in the format of a project API key, whether or not the key exists. */
export function apiKeyOf(authorization: string | undefined): string | undefined {
  const bearer = bearerOf(authorization)
  return bearer !== undefined && /^pk_/i.test(bearer) ? bearer : undefined
}

/** Checks only the format, before any lookup: valid, revoked and invented keys get the same response. */
export function refuseApiKey(authorization: string | undefined): void {
  if (apiKeyOf(authorization) !== undefined) {
    throw new PosternError(
      'api_key_not_allowed',
      "Project API keys are not accepted here. Use an administrator's access token.",
    )
  }
}

/** RFC 6750 §2.1. The scheme is case-insensitive (RFC 9110 §11.1). */
function bearerOf(authorization: string | undefined): string | undefined {
  return /^bearer +([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1]
}

/**
 * RFC 8725 §3.11: a token for another purpose (a logout token, a DPoP proof) declares that purpose in `typ` and is
 * rejected. An issuer with a configured type must send that type; for other issuers `typ` is optional.
 */
function hasExpectedType({ typ, kid }: Record<string, unknown>, { tokenType, isOwn }: Issuer): boolean {
  if (isOwn && kid === undefined) return false
  if (typ === undefined) return tokenType === undefined
  const type = typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : undefined
  return tokenType === undefined
    ? type === 'jwt' || type === accessTokenType
    : type === tokenType.toLowerCase()
}

type VerifiedClaims = JWTPayload & { sub: string; iat: number; exp: number }

async function verify(token: string, issuer: Issuer): Promise<Omit<Verified, 'issuer'>> {
  try {
    const { payload, protectedHeader, key } = await jwtVerify<{ sub: string; iat: number; exp: number }>(
      token,
      issuer.keys,
      {
        algorithms,
        issuer: issuer.issuer,
        audience: issuer.audience,
        requiredClaims: ['sub', 'iat', 'exp', ...(issuer.requiresNotBefore ? ['nbf'] : [])],
      },
    )
    if (!isPlausibleTime(payload.iat)) throw unauthenticated()
    if (payload.exp - payload.iat > issuer.maxLifetimeSeconds) throw unauthenticated()
    return { claims: payload, header: protectedHeader, key }
  } catch (error) {
    throw refusal(error)
  }
}

// Synchronized clocks differ by less than this tolerance.
const clockSkewSeconds = 60

/** jose checks `iat` only when a maximum age is requested. */
const isPlausibleTime = (seconds: unknown): boolean =>
  typeof seconds === 'number' && seconds >= 0 && seconds <= Date.now() / 1000 + clockSkewSeconds

function refusal(error: unknown): unknown {
  if (error instanceof PosternError) return error
  if (error instanceof KeysNotLoaded) return error.cause
  if (error instanceof errors.JWTExpired) {
    return new PosternError('token_expired', 'The access token has expired. Request a new one and try again.')
  }
  return unauthenticated(error)
}

function subjectOf({ sub, sid, gen }: VerifiedClaims): TokenSubject {
  const userId = safeId(sub)
  const sessionId = sid === undefined ? undefined : safeId(sid)
  if (userId === undefined || (sid !== undefined && sessionId === undefined)) throw unauthenticated()
  if (!isGeneration(gen)) throw unauthenticated()
  return { userId, sessionId, generation: gen }
}

/** OpenID Connect Core §2: a string of at most 255 ASCII characters. */
function externalSubjectOf({ sub }: VerifiedClaims): string {
  if (typeof sub !== 'string' || !/^[\x20-\x7e]{1,255}$/.test(sub)) throw unauthenticated()
  return sub
}

const isGeneration = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 2 ** 31

const safeId = (value: unknown): number | undefined =>
  typeof value === 'string' && /^[1-9]\d{0,15}$/.test(value) && Number.isSafeInteger(Number(value))
    ? Number(value)
    : undefined

const unauthenticated = (cause?: unknown): PosternError =>
  new PosternError('unauthenticated', 'A valid access token is required: Authorization: Bearer <token>.', {
    cause,
  })
