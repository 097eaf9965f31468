/**
 * Better Auth, configured for Postern: passwords, TOTP, sessions and the keys that sign access tokens.
 *
 * Its router is not mounted. The signin plane calls the few endpoints that Postern offers by name (sign-in.ts), so a new
 * release does not expose new endpoints. Its queries run as postern_identity, which cannot change a user's role.
 */
import { passkey } from '@better-auth/passkey'
import { APIError, betterAuth, type GenericEndpointContext } from 'better-auth'
import { createAuthEndpoint } from 'better-auth/api'
import { setSessionCookie } from 'better-auth/cookies'
import { jwt, signJWT } from 'better-auth/plugins/jwt'
import { twoFactor } from 'better-auth/plugins/two-factor'
import type { Database, Db } from '../../../platform/db/db.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { recordUserActivity } from '../activity/activity.ts'
import { findSignInUser, useTotpCode } from './access.sql.ts'
import { accessTokenLifetimeSeconds, accessTokenType } from './issuers.ts'
import { lockSession } from './password-race.sql.ts'

export interface BetterAuthOptions {
  publicUrl: URL
  secrets: { version: number; value: string }[]
  database: Database
  log: Logger
}

export type BetterAuth = ReturnType<typeof createBetterAuth>

/** The signin plane sets this header from the connection. The caller's own header is never used. */
export const clientAddressHeader = 'x-postern-client-address'
/** Also set by the signin plane, for operations that change credentials: the request id and the signed-in user. */
export const requestIdHeader = 'x-postern-request-id'
export const userIdHeader = 'x-postern-user-id'

const sessionLifetimeSeconds = 12 * 60 * 60
const sessionRenewalSeconds = 60 * 60
const keyRotationSeconds = 30 * 24 * 60 * 60

const totpPath = '/two-factor/verify-totp'
const backupCodePath = '/two-factor/verify-backup-code'
const changePasswordPath = '/change-password'
const disableTotpPath = '/two-factor/disable'
const passkeySignInPath = '/passkey/verify-authentication'
/** Starts the session of a user whom an external issuer has authenticated (external-sign-in.ts). */
export const externalSessionPath = '/external/session'

const jwtOptions = {
  jwks: { keyPairConfig: { alg: 'EdDSA', crv: 'Ed25519' }, rotationInterval: keyRotationSeconds },
  disableSettingJwtHeader: true,
} as const

export function createBetterAuth({ publicUrl, secrets, database, log }: BetterAuthOptions) {
  const db = database.as('identity')
  /** The requests whose passkey verified its user. */
  const userVerified = new WeakSet<object>()
  return betterAuth({
    appName: 'Postern',
    baseURL: publicUrl.origin,
    basePath: '/',
    secrets,
    trustedOrigins: [publicUrl.origin],
    telemetry: { enabled: false },
    logger: {
      // The other arguments contain whole requests and rows. Only errors are both useful and safe to log.
      log: (level, message, ...args) =>
        log[level]({ err: args.find((arg) => arg instanceof Error) }, `sign-in: ${message}`),
    },
    // Other errors are rethrown instead of logged and hidden, so sign-in.ts can tell an outage from a bug.
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
        '/passkey/*': { window: 60, max: 20 },
        '/get-session': false,
      },
    },
    user: {
      modelName: 'users',
      fields: { emailVerified: 'email_verified', createdAt: 'created_at', updatedAt: 'updated_at' },
    },
    session: {
      modelName: 'sessions',
      // Changes to credentials require the password or a recent second factor (sign-in.ts), not a new session.
      freshAge: 0,
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
        externalAuthAt: { type: 'date', required: false, input: false, fieldName: 'external_auth_at' },
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
      // Better Auth writes outside this transaction, so the user's activity row is written first. If that fails, nothing
      // changes.
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
              await recordCredentials(db, context, 'auth.confirm-totp')
            if (context?.path === disableTotpPath) await recordCredentials(db, context, 'auth.disable-totp')
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
            const isUserVerified = context !== null && userVerified.has(context.context)
            return {
              data: {
                ...session,
                secondFactorAt: secondFactorAt(context, isUserVerified),
                externalAuthAt: externalAuthAt(context),
              },
            }
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
      passkey({
        rpID: publicUrl.hostname,
        rpName: 'Postern',
        origin: publicUrl.origin,
        // A passkey names its account, so that no address is needed to sign in.
        authenticatorSelection: { residentKey: 'required', userVerification: 'preferred' },
        registration: {
          afterVerification: async ({ ctx }) => {
            await recordCredentials(db, ctx, 'auth.add-passkey')
          },
        },
        authentication: {
          afterVerification: ({ ctx, verification }) => {
            if (verification.authenticationInfo.userVerified) userVerified.add(ctx.context)
          },
        },
        schema: {
          passkey: {
            modelName: 'passkeys',
            fields: {
              publicKey: 'public_key',
              userId: 'user_id',
              credentialID: 'credential_id',
              deviceType: 'device_type',
              backedUp: 'backed_up',
              createdAt: 'created_at',
            },
          },
        },
      }),
      externalSessions(),
      withSecondFactorChallenge({
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

/** The body comes from external-sign-in.ts: no request can reach this endpoint. */
const externalSessions = () => ({
  id: 'external-sessions',
  endpoints: {
    startExternalSession: createAuthEndpoint(externalSessionPath, { method: 'POST' }, async (context) => {
      const { internalAdapter } = context.context
      const { userId } = externalBody(context)
      const user = await internalAdapter.findUserById(String(userId))
      if (!user) throw new APIError('UNAUTHORIZED', { code: 'INVALID_EMAIL_OR_PASSWORD' })
      const session = await internalAdapter.createSession(user.id)
      await setSessionCookie(context, { session, user })
      return context.json({})
    }),
  },
})

interface ExternalBody {
  userId: number
  secondFactorAt: string | null
  authenticatedAt: string | null
}

const externalBody = ({ body }: { body?: unknown }): ExternalBody => body as ExternalBody

const challengedPaths = [passkeySignInPath, externalSessionPath]

/**
 * The second-factor plugin, whose challenge also follows a sign-in with a passkey that did not verify its user, or at an issuer
 * that did not verify a second factor. The library lets them pass.
 */
function withSecondFactorChallenge(options: Parameters<typeof twoFactor>[0]) {
  const plugin = twoFactor(options)
  const [challenge] = plugin.hooks.after
  if (!challenge || plugin.hooks.after.length > 1) throw new Error('the second-factor plugin has changed')
  const { matcher } = challenge
  challenge.matcher = (context) =>
    matcher(context) ||
    (challengedPaths.includes(context.path ?? '') &&
      context.context.newSession?.session['secondFactorAt'] === null)
  return plugin
}

async function recordCredentials(
  db: Db,
  { headers, context }: GenericEndpointContext,
  operation: 'auth.change-password' | 'auth.confirm-totp' | 'auth.disable-totp' | 'auth.add-passkey',
): Promise<void> {
  const userId = Number(headers?.get(userIdHeader) ?? Number.NaN)
  const requestId = headers?.get(requestIdHeader)
  if (!Number.isSafeInteger(userId) || !requestId) throw new Error(`${operation} without a user`)
  await db.transaction(async (tx) => {
    // A password reset may have revoked the session while the passwords were being hashed. In that case, the password set by
    // the reset is kept.
    if (!(await lockSession(tx, Number(context.session?.session.id)))) throw new APIError('UNAUTHORIZED')
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
 * When the second factor of a new session was verified. Determined by the path that creates the session, never by data
 * copied into the session. A password change replaces its session and preserves the time.
 */
function secondFactorAt(context: GenericEndpointContext | null, isUserVerified: boolean): Date | null {
  if (context?.path === passkeySignInPath) return isUserVerified ? new Date() : null
  if (context?.path === totpPath || context?.path === backupCodePath) return new Date()
  if (context?.path === externalSessionPath) return dateOf(externalBody(context).secondFactorAt)
  if (context?.path !== changePasswordPath) return null
  return (context.context.session?.session['secondFactorAt'] as Date | null | undefined) ?? null
}

/** A password change preserves the time as well. */
function externalAuthAt(context: GenericEndpointContext | null): Date | null {
  if (context?.path === externalSessionPath) return dateOf(externalBody(context).authenticatedAt)
  if (context?.path !== changePasswordPath) return null
  return (context.context.session?.session['externalAuthAt'] as Date | null | undefined) ?? null
}

const dateOf = (text: string | null): Date | null => (text === null ? null : new Date(text))

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

/** Signs with the newest valid key. Creates a key if there is none. */
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
