import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const startTotpReplacement = signInOperation({
  id: 'auth.start-totp-replacement',
  method: 'POST',
  path: '/auth/totp/replacement',
  summary: 'Replace your authenticator app',
  description:
    'The new authenticator becomes the second factor when its first code is sent to `auth.replace-totp` within ten minutes. Until then, the old one stays valid. Show `totp_uri` as a QR code. Backup codes do not change.',
  needsSession: true,
  body: Type.Object(
    { password: Type.String({ minLength: 1, maxLength: 128 }) },
    { additionalProperties: false, examples: [{ password: 'correct horse battery staple' }] },
  ),
  response: Type.Object({ totp_uri: Type.String() }),
  success: 'The new authenticator awaits confirmation.',
  failures: {
    401: '`unauthenticated`: the password is wrong, there is no session, a second factor is set up but was not verified in this session, or the request comes from another site.',
    404: '`not_found`: no second factor is set up.',
    429: tooManyAttempts,
  },
  run: ({ secondFactors, browser, body }) => secondFactors.startReplacement(browser, body.password),
})
