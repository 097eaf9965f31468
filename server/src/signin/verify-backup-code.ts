import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const verifyBackupCode = signInOperation({
  id: 'auth.verify-backup-code',
  method: 'POST',
  path: '/auth/backup-code',
  summary: 'Verify a backup code',
  description: 'Completes a sign-in without the authenticator. Each backup code can be used once.',
  needsSession: false,
  body: Type.Object(
    { code: Type.String({ minLength: 1, maxLength: 32 }) },
    { additionalProperties: false, examples: [{ code: 'hT3kq-9Lw2z' }] },
  ),
  success: 'Two-factor authentication is complete and the session is active. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the code is wrong or already used, there is no pending sign-in, or the request comes from another site.',
    409: '`already_exists`: you are already signed in.',
    429: tooManyAttempts,
  },
  run: ({ signIn, browser, body }) => signIn.withBackupCode(browser, body.code),
})
