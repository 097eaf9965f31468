import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const verifyTotp = signInOperation({
  id: 'auth.verify-totp',
  method: 'POST',
  path: '/auth/totp/code',
  summary: 'Verify an authenticator code',
  description:
    'Completes a sign-in, or confirms an authenticator that was created with `auth.enroll-totp` in this session. Each code can be used once. After five wrong codes, the sign-in is canceled. After ten consecutive wrong codes, the second factor is locked for 15 minutes.',
  needsSession: false,
  body: Type.Object(
    { code: Type.String({ pattern: '^[0-9]{6}$' }) },
    { additionalProperties: false, examples: [{ code: '492039' }] },
  ),
  success: 'Two-factor authentication is complete and the session is active. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the code is wrong or already used, there is no pending sign-in, or the request comes from another site.',
    409: '`already_exists`: you are already signed in.',
    429: tooManyAttempts,
  },
  run: ({ signIn, browser, body }) => signIn.withTotp(browser, body.code),
})
