import Type from 'typebox'
import { Problem } from '../platform/http/problem.ts'
import { networkOf } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { addPasskey } from './add-passkey.ts'
import { changeEmail } from './change-email.ts'
import { changePassword } from './change-password.ts'
import { confirmEmail } from './confirm-email.ts'
import { confirmSignUp } from './confirm-sign-up.ts'
import { deleteAccount } from './delete-account.ts'
import { deletePasskey } from './delete-passkey.ts'
import { disableTotp } from './disable-totp.ts'
import { endOtherSessions } from './end-other-sessions.ts'
import { endSession } from './end-session.ts'
import { enrollTotp } from './enroll-totp.ts'
import { IssuerParams } from './external-schemas.ts'
import { forgotPassword } from './forgot-password.ts'
import { issueToken } from './issue-token.ts'
import { listActivity } from './list-activity.ts'
import { listLogins } from './list-logins.ts'
import { listPasskeys } from './list-passkeys.ts'
import { listSessions } from './list-sessions.ts'
import {
  browserOf,
  callbackPath,
  jwksPath,
  registerSignIn,
  type SignInDeps,
  tooManyRequests,
} from './operation.ts'
import { registerInvited } from './register-invited.ts'
import { renamePasskey } from './rename-passkey.ts'
import { renewBackupCodes } from './renew-backup-codes.ts'
import { replaceTotp } from './replace-totp.ts'
import { resetPassword } from './reset-password.ts'
import { showInvitation } from './show-invitation.ts'
import { showSession } from './show-session.ts'
import { signIn } from './sign-in.ts'
import { signInWithPasskey } from './sign-in-with-passkey.ts'
import { signOut } from './sign-out.ts'
import { signUp } from './sign-up.ts'
import { startAddingPasskey } from './start-adding-passkey.ts'
import { startIssuerSignIn } from './start-issuer-sign-in.ts'
import { startLinkingLogin } from './start-linking-login.ts'
import { startPasskeySignIn } from './start-passkey-sign-in.ts'
import { startTotpReplacement } from './start-totp-replacement.ts'
import { undoEmail } from './undo-email.ts'
import { unlinkLogin } from './unlink-login.ts'
import { verifyBackupCode } from './verify-backup-code.ts'
import { verifyTotp } from './verify-totp.ts'

const operations = [
  signIn,
  verifyTotp,
  verifyBackupCode,
  signOut,
  issueToken,
  showSession,
  listSessions,
  listActivity,
  endSession,
  endOtherSessions,
  changePassword,
  forgotPassword,
  resetPassword,
  enrollTotp,
  startTotpReplacement,
  replaceTotp,
  disableTotp,
  renewBackupCodes,
  listPasskeys,
  startAddingPasskey,
  addPasskey,
  renamePasskey,
  deletePasskey,
  startPasskeySignIn,
  signInWithPasskey,
  startIssuerSignIn,
  listLogins,
  startLinkingLogin,
  unlinkLogin,
  showInvitation,
  registerInvited,
  signUp,
  confirmSignUp,
  changeEmail,
  confirmEmail,
  undoEmail,
  deleteAccount,
]

const jwksSchema = {
  operationId: 'auth.list-signing-keys',
  tags: ['auth'],
  summary: 'List the public keys for access tokens',
  description:
    'A JSON Web Key Set (RFC 7517) for programs that verify access tokens themselves. Fetch the set again when a token has an unknown `kid`: new keys are used for signing as soon as they are created.',
  security: [],
  response: {
    200: {
      description: 'The keys.',
      content: {
        'application/json': {
          schema: Type.Object({ keys: Type.Array(Type.Object({}, { additionalProperties: true })) }),
        },
      },
    },
    429: { description: tooManyRequests, content: { 'application/json': { schema: Problem } } },
  },
}

const Parameter = Type.Optional(Type.String({ maxLength: 8192 }))

/** The redirect URI of an issuer: for browsers, and not part of the API. */
const callbackSchema = {
  hide: true,
  params: IssuerParams,
  // Issuers add parameters of their own.
  querystring: Type.Object(
    { state: Parameter, code: Parameter, iss: Parameter, error: Parameter },
    { additionalProperties: true },
  ),
}

export function signInRoutes(app: HttpServer, deps: SignInDeps): void {
  registerSignIn(app, operations, deps)
  app.get<{ Params: { issuer: string } }>(
    `/v1${callbackPath}`,
    { schema: callbackSchema, onRequest: ({ ip }) => deps.addressLimit(networkOf(ip)) },
    async (request, reply) => {
      const [, query = ''] = /\?(.*)$/s.exec(request.url) ?? []
      const { body, cookies } = await deps.external.complete(browserOf(request), request.params.issuer, query)
      for (const cookie of cookies) reply.header('set-cookie', cookie)
      return reply.header('cache-control', 'no-store').redirect(body, 303)
    },
  )
  app.get(`/v1${jwksPath}`, { schema: jwksSchema }, async ({ ip }, reply) => {
    await deps.addressLimit(networkOf(ip))
    reply.header('cache-control', 'public, max-age=60')
    return { keys: await deps.signIn.publicKeys() }
  })
}
