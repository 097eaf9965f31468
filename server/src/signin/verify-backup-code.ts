import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const verifyBackupCode = signInOperation({
  id: 'auth.give-backup-code',
  method: 'POST',
  path: '/auth/backup-code',
  summary: 'Give a backup code',
  description: 'Completes a sign-in without the authenticator. Each backup code is good for one use.',
  needsSession: false,
  body: Type.Object(
    { code: Type.String({ minLength: 1, maxLength: 32 }) },
    { additionalProperties: false, examples: [{ code: 'hT3kq-9Lw2z' }] },
  ),
  success: 'The session is open, with a second factor. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the code is wrong or was used before, no sign-in was begun, or the request comes from another site.',
    409: '`already_exists`: you are signed in already.',
    429: tooManyAttempts,
  },
  run: ({ signIn, browser, body }) => signIn.withBackupCode(browser, body.code),
})
