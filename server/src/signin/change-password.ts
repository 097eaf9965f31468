import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

const Password = Type.String({ minLength: 1, maxLength: 128 })

export const changePassword = signInOperation({
  id: 'auth.change-password',
  method: 'POST',
  path: '/auth/password',
  summary: 'Change your password',
  description:
    'The new one has at least 12 characters. All your sessions end, and the access tokens drawn from them; this browser gets a new session in exchange for its old one.',
  needsSession: true,
  body: Type.Object(
    { current_password: Password, new_password: Password },
    {
      additionalProperties: false,
      examples: [
        { current_password: 'correct horse battery staple', new_password: 'a much better password' },
      ],
    },
  ),
  success: 'The password is changed. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the current password is wrong, nobody is signed in here, a second factor is set up but was not given, or the request comes from another site.',
    429: tooManyAttempts,
  },
  run: ({ signIn, browser, body }) =>
    signIn.changePassword(browser, body.current_password, body.new_password),
})
