import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const setUpTotp = signInOperation({
  id: 'auth.set-up-totp',
  method: 'POST',
  path: '/auth/totp',
  summary:
    'Set up an authenticator as second factor. It counts once a code of it was given to auth.give-totp-code.',
  body: Type.Object(
    { password: Type.String({ minLength: 1, maxLength: 128 }) },
    { additionalProperties: false },
  ),
  response: Type.Object({ totp_uri: Type.String(), backup_codes: Type.Array(Type.String()) }),
  run: ({ signIn, browser, body }) => signIn.startTotp(browser, body.password),
})
