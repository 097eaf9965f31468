import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const setUpTotp = signInOperation({
  id: 'auth.set-up-totp',
  method: 'POST',
  path: '/auth/totp',
  summary: 'Set up an authenticator as second factor',
  description:
    'It counts once a code of it was given to `auth.give-totp-code` in this session. Show `totp_uri` as a QR code; the backup codes are told this once.',
  needsSession: true,
  body: Type.Object(
    { password: Type.String({ minLength: 1, maxLength: 128 }) },
    { additionalProperties: false, examples: [{ password: 'correct horse battery staple' }] },
  ),
  response: Type.Object({ totp_uri: Type.String(), backup_codes: Type.Array(Type.String()) }),
  success: 'The authenticator, to be confirmed.',
  failures: {
    401: '`unauthenticated`: the password is wrong, nobody is signed in here, or the request comes from another site.',
    409: '`already_exists`: a second factor is set up already.',
    429: tooManyAttempts,
  },
  run: ({ signIn, browser, body }) => signIn.startTotp(browser, body.password),
})
