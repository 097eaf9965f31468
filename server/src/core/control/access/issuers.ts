import type { JWTVerifyGetKey } from 'jose'
import type { Db } from '../../../platform/db/db.ts'
import { listSigningKeys } from './access.sql.ts'
import { type KeyTiming, keyTiming, outsideKeys, ownKeys } from './issuer-keys.ts'

/**
 * Who may issue tokens, and where each one's keys are found.
 *
 * Keys come from our own table or from an address that the operator configured, never from the token.
 */
export interface Issuer {
  issuer: string
  audience: string
  keys: JWTVerifyGetKey
  /** The `typ` header that every token of this issuer carries, where it is known to send one. */
  tokenType: string | undefined
  requiresNotBefore: boolean
  maxLifetimeSeconds: number
  isOwn: boolean
}

export const accessTokenType = 'at+jwt'
export const accessTokenLifetimeSeconds = 600

/** An outside issuer decides how long its tokens live, up to a day: they cannot be taken back one by one. */
const outsideTokenLifetimeSeconds = 86_400

/** A signing key is still good for verification this long after it stopped signing. */
export const signingKeyGraceSeconds = 3600

export function ownIssuer(publicUrl: URL, db: Db, timing: KeyTiming = keyTiming): Issuer {
  return {
    issuer: publicUrl.origin,
    audience: `${publicUrl.origin}/v1`,
    keys: ownKeys(() => db.read((tx) => listSigningKeys(tx, signingKeyGraceSeconds)), timing),
    tokenType: accessTokenType,
    requiresNotBefore: false,
    maxLifetimeSeconds: accessTokenLifetimeSeconds,
    isOwn: true,
  }
}

export interface OutsideIssuerOptions {
  issuer: string
  audience: string
  jwks_url: string
  token_type?: string
  requires_nbf?: boolean
}

export function outsideIssuer(options: OutsideIssuerOptions, timing: KeyTiming = keyTiming): Issuer {
  return {
    issuer: options.issuer,
    audience: options.audience,
    keys: outsideKeys(new URL(options.jwks_url), timing),
    tokenType: options.token_type,
    requiresNotBefore: options.requires_nbf ?? false,
    maxLifetimeSeconds: outsideTokenLifetimeSeconds,
    isOwn: false,
  }
}
