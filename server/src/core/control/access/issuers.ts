/**
 * The trusted token issuers and the source of each issuer's keys: the signing key table, or a URL that the operator
 * configured. A token never determines the source of its key.
 */
import type { JWTVerifyGetKey } from 'jose'
import type { Db } from '../../../platform/db/db.ts'
import { listSigningKeys } from './access.sql.ts'
import { externalKeys, type KeyTiming, keyTiming, ownKeys } from './issuer-keys.ts'

export interface Issuer {
  issuer: string
  audience: string
  keys: JWTVerifyGetKey
  /** The required `typ` header. If undefined, `typ` is optional. */
  tokenType: string | undefined
  requiresNotBefore: boolean
  maxLifetimeSeconds: number
  isOwn: boolean
}

export const accessTokenType = 'at+jwt'
export const accessTokenLifetimeSeconds = 600

/** An external issuer sets the lifetime of its tokens, up to a day, because individual tokens cannot be revoked. */
const externalTokenLifetimeSeconds = 86_400

/** How long a signing key verifies tokens after it has stopped signing. */
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

export interface ExternalIssuerOptions {
  issuer: string
  audience: string
  jwks_url: string
  token_type?: string
  requires_nbf?: boolean
}

export function externalIssuer(options: ExternalIssuerOptions, timing: KeyTiming = keyTiming): Issuer {
  return {
    issuer: options.issuer,
    audience: options.audience,
    keys: externalKeys(new URL(options.jwks_url), timing),
    tokenType: options.token_type,
    requiresNotBefore: options.requires_nbf ?? false,
    maxLifetimeSeconds: externalTokenLifetimeSeconds,
    isOwn: false,
  }
}
