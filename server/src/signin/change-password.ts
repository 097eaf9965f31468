import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

const Password = Type.String({ minLength: 1, maxLength: 128 })

export const changePassword = signInOperation({
  id: 'auth.change-password',
  method: 'POST',
  path: '/auth/password',
  summary: 'Change your password',
  description:
    'The new password must have at least 12 characters. All your sessions are revoked, and access tokens issued from them become invalid. The response sets the cookie for a new session.',
  needsSession: true,
  body: Type.Object(
    { current_password: Password, new_password: Type.String({ minLength: 12, maxLength: 128 }) },
    {
      additionalProperties: false,
      examples: [
        { current_password: 'correct horse battery staple', new_password: 'a much better password' },
      ],
    },
  ),
  success: 'The password is changed. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the current password is wrong, there is no session, a second factor is set up but was not verified in this session, or the request comes from another site.',
    429: tooManyAttempts,
  },
  run: ({ accounts, browser, body }) =>
    accounts.changePassword(browser, body.current_password, body.new_password),
})
