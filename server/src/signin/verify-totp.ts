import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const verifyTotp = signInOperation({
  id: 'auth.give-totp-code',
  method: 'POST',
  path: '/auth/totp/code',
  summary: "Give the authenticator's code",
  description:
    'Completes a sign-in, or confirms an authenticator that was just set up with `auth.set-up-totp` in this session. A code opens one session; five wrong ones end the attempt, ten in a row lock the second factor for 15 minutes.',
  needsSession: false,
  body: Type.Object(
    { code: Type.String({ pattern: '^[0-9]{6}$' }) },
    { additionalProperties: false, examples: [{ code: '492039' }] },
  ),
  success: 'The session is open, with a second factor. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the code is wrong or was used before, no sign-in was begun, or the request comes from another site.',
    409: '`already_exists`: you are signed in already.',
    429: tooManyAttempts,
  },
  run: ({ signIn, browser, body }) => signIn.withTotp(browser, body.code),
})
