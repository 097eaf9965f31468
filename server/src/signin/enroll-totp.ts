import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const enrollTotp = signInOperation({
  id: 'auth.enroll-totp',
  method: 'POST',
  path: '/auth/totp',
  summary: 'Set up an authenticator app',
  description:
    'The authenticator becomes the second factor when its first code is sent to `auth.verify-totp` in this session. Show `totp_uri` as a QR code. The backup codes are shown only once.',
  needsSession: true,
  body: Type.Object(
    { password: Type.String({ minLength: 1, maxLength: 128 }) },
    { additionalProperties: false, examples: [{ password: 'correct horse battery staple' }] },
  ),
  response: Type.Object({ totp_uri: Type.String(), backup_codes: Type.Array(Type.String()) }),
  success: 'The authenticator is created and awaits confirmation.',
  failures: {
    401: '`unauthenticated`: the password is wrong, there is no session, or the request comes from another site.',
    409: '`already_exists`: a second factor is already set up.',
    429: tooManyAttempts,
  },
  run: ({ secondFactors, browser, body }) => secondFactors.startTotp(browser, body.password),
})
