import { APIError, betterAuth, type GenericEndpointContext } from 'better-auth'
import { jwt, signJWT } from 'better-auth/plugins/jwt'
import { twoFactor } from 'better-auth/plugins/two-factor'
import type { Database, Db } from '../../../platform/db/db.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { recordUserActivity } from '../activity/activity.ts'
import { findSignInUser, useTotpCode } from './access.sql.ts'
import { accessTokenLifetimeSeconds, accessTokenType } from './issuers.ts'
import { keepSession } from './settled-password.sql.ts'

/**
 * Better Auth, set up for Postern: passwords, TOTP, sessions and the keys that sign access tokens.
 *
 * It is never mounted as it is. The signin plane calls the few of its endpoints that Postern offers, by
 * name (sign-in.ts), so that what a new release of it adds is not suddenly on the network. Its queries run
 * as postern_identity, which cannot touch a user's role.
 */
export interface BetterAuthOptions {
  publicUrl: URL
  secrets: { version: number; value: string }[]
  database: Database
  log: Logger
}

export type BetterAuth = ReturnType<typeof createBetterAuth>

/** Set by the signin plane from the connection, never taken from the caller. */
export const clientAddressHeader = 'x-postern-client-address'
/** Likewise: who is signed in where credentials change, and in which request. */
export const requestIdHeader = 'x-postern-request-id'
export const userIdHeader = 'x-postern-user-id'

const sessionLifetimeSeconds = 12 * 60 * 60
const sessionRenewalSeconds = 60 * 60
const keyRotationSeconds = 30 * 24 * 60 * 60

const totpPath = '/two-factor/verify-totp'
const backupCodePath = '/two-factor/verify-backup-code'
const changePasswordPath = '/change-password'

const jwtOptions = {
  jwks: { keyPairConfig: { alg: 'EdDSA', crv: 'Ed25519' }, rotationInterval: keyRotationSeconds },
  disableSettingJwtHeader: true,
} as const

export function createBetterAuth({ publicUrl, secrets, database, log }: BetterAuthOptions) {
  const db = database.as('identity')
  return betterAuth({
    appName: 'Postern',
    baseURL: publicUrl.origin,
    basePath: '/',
    secrets,
    trustedOrigins: [publicUrl.origin],
    telemetry: { enabled: false },
    logger: {
      // Its further arguments are whole requests and rows; only an error is worth keeping, and safe.
      log: (level, message, ...args) =>
        log[level]({ err: args.find((arg) => arg instanceof Error) }, `sign-in: ${message}`),
    },
    // What is no answer to the caller is not for Better Auth to log and hide: sign-in.ts tells an outage from a bug.
    onAPIError: {
      onError: (error) => {
        if (!(error instanceof APIError)) throw error
      },
    },
    database: { db: database.kyselyAsIdentity().withSchema('control'), type: 'postgres' },
    advanced: {
      // The migrations own the schema.
      database: { generateId: 'serial', validateSchema: false },
      cookiePrefix: 'postern',
      useSecureCookies: publicUrl.protocol === 'https:',
      defaultCookieAttributes: { sameSite: 'strict', httpOnly: true, path: '/v1/auth' },
      ipAddress: { ipAddressHeaders: [clientAddressHeader] },
    },
    rateLimit: {
      enabled: true,
      storage: 'database',
      modelName: 'sign_in_rates',
      fields: { lastRequest: 'last_request' },
      window: 60,
      max: 60,
      customRules: {
        '/sign-in/email': { window: 60, max: 10 },
        '/two-factor/*': { window: 60, max: 10 },
        '/get-session': false,
      },
    },
    user: {
      modelName: 'users',
      fields: { emailVerified: 'email_verified', createdAt: 'created_at', updatedAt: 'updated_at' },
    },
    session: {
      modelName: 'sessions',
      expiresIn: sessionLifetimeSeconds,
      updateAge: sessionRenewalSeconds,
      fields: {
        userId: 'user_id',
        expiresAt: 'expires_at',
        ipAddress: 'ip_address',
        userAgent: 'user_agent',
        createdAt: 'created_at',
        updatedAt: 'updated_at',
      },
      additionalFields: {
        secondFactorAt: { type: 'date', required: false, input: false, fieldName: 'second_factor_at' },
      },
    },
    account: {
      modelName: 'accounts',
      fields: {
        userId: 'user_id',
        accountId: 'account_id',
        providerId: 'provider_id',
        accessToken: 'access_token',
        refreshToken: 'refresh_token',
        idToken: 'id_token',
        accessTokenExpiresAt: 'access_token_expires_at',
        refreshTokenExpiresAt: 'refresh_token_expires_at',
        createdAt: 'created_at',
        updatedAt: 'updated_at',
      },
    },
    verification: {
      modelName: 'verifications',
      fields: { expiresAt: 'expires_at', createdAt: 'created_at', updatedAt: 'updated_at' },
    },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: 12,
      maxPasswordLength: 128,
    },
    databaseHooks: {
      // Better Auth writes without a transaction of ours: the row of the user's activity is written first, and without it
      // nothing changes.
      account: {
        update: {
          before: async (_account, context) => {
            if (context?.path === changePasswordPath)
              await recordCredentials(db, context, 'auth.change-password')
          },
        },
      },
      user: {
        update: {
          before: async (user, context) => {
            if (context?.path === totpPath && user['twoFactorEnabled'] === true)
              await recordCredentials(db, context, 'auth.enrol-totp')
          },
        },
      },
      session: {
        create: {
          before: async (session, context) => {
            const userId = Number(session.userId)
            const user = await db.read((tx) => findSignInUser(tx, { id: userId }))
            if (!user?.is_active) throw new APIError('UNAUTHORIZED', { code: 'INVALID_EMAIL_OR_PASSWORD' })
            if (context?.path === totpPath) {
              const isFirstUse = await db.transaction((tx) => useTotpCode(tx, userId, context.body.code))
              if (!isFirstUse) throw new APIError('UNAUTHORIZED', { code: 'INVALID_CODE' })
            }
            return { data: { ...session, secondFactorAt: secondFactorAt(context) } }
          },
        },
      },
    },
    plugins: [
      jwt({
        ...jwtOptions,
        schema: {
          jwks: {
            modelName: 'signing_keys',
            fields: {
              publicKey: 'public_key',
              privateKey: 'private_key',
              createdAt: 'created_at',
              expiresAt: 'expires_at',
            },
          },
        },
      }),
      twoFactor({
        issuer: 'Postern',
        schema: {
          user: { fields: { twoFactorEnabled: 'two_factor_enabled' } },
          twoFactor: {
            modelName: 'two_factors',
            fields: {
              userId: 'user_id',
              backupCodes: 'backup_codes',
              failedVerificationCount: 'failed_verification_count',
              lockedUntil: 'locked_until',
            },
          },
        },
      }),
    ],
  })
}

async function recordCredentials(
  db: Db,
  { headers, context }: GenericEndpointContext,
  operation: 'auth.change-password' | 'auth.enrol-totp',
): Promise<void> {
  const userId = Number(headers?.get(userIdHeader) ?? Number.NaN)
  const requestId = headers?.get(requestIdHeader)
  if (!Number.isSafeInteger(userId) || !requestId) throw new Error(`${operation} without a user`)
  await db.transaction(async (tx) => {
    // It may have been ended while the passwords were hashed: by a reset, whose password stays then.
    if (!(await keepSession(tx, Number(context.session?.session.id)))) throw new APIError('UNAUTHORIZED')
    await recordUserActivity(tx, userId, {
      actor: {
        ...{ type: 'user', id: userId, email: null },
        ...{ ip: headers?.get(clientAddressHeader) ?? null, userAgent: headers?.get('user-agent') ?? null },
      },
      requestId,
      operation,
      change: { resource: 'account', id: userId, before: null, after: null },
    })
  })
}

/**
 * When the second factor of a session that is being made was given: decided by how the session comes to be,
 * never by what is copied into it. A changed password replaces the session it was changed in.
 */
function secondFactorAt(context: GenericEndpointContext | null): Date | null {
  if (context?.path === totpPath || context?.path === backupCodePath) return new Date()
  if (context?.path !== changePasswordPath) return null
  return (context.context.session?.session['secondFactorAt'] as Date | null | undefined) ?? null
}

export interface AccessTokenClaims {
  issuer: string
  audience: string
  userId: number
  generation: number
  sessionId: number | undefined
}

export interface AccessToken {
  token: string
  expiresAt: Date
}

/** Signs with the newest living key; makes one where there is none. */
export async function signAccessToken(auth: BetterAuth, claims: AccessTokenClaims): Promise<AccessToken> {
  const iat = Math.floor(Date.now() / 1000)
  const exp = iat + accessTokenLifetimeSeconds
  const context = await auth.$context
  const token = await signJWT({ context } as unknown as Parameters<typeof signJWT>[0], {
    options: jwtOptions,
    header: { typ: accessTokenType },
    payload: {
      iss: claims.issuer,
      aud: claims.audience,
      sub: String(claims.userId),
      gen: claims.generation,
      ...(claims.sessionId === undefined ? {} : { sid: String(claims.sessionId) }),
      iat,
      exp,
    },
  })
  return { token, expiresAt: new Date(exp * 1000) }
}
