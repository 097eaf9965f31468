import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const signIn = signInOperation({
  id: 'auth.sign-in',
  method: 'POST',
  path: '/auth/sign-in',
  summary: 'Sign in with email and password',
  description:
    'Where the user has a second factor, the session is not open yet: the answer says so and sets a cookie that stands for this attempt. Give a code within ten minutes to `auth.give-totp-code` or `auth.give-backup-code`.',
  needsSession: false,
  body: Type.Object(
    {
      email: Type.String({ minLength: 3, maxLength: 254 }),
      password: Type.String({ minLength: 1, maxLength: 128 }),
    },
    {
      additionalProperties: false,
      examples: [{ email: 'ada@example.com', password: 'correct horse battery staple' }],
    },
  ),
  response: Type.Object(
    { second_factor_required: Type.Boolean({ description: 'Whether a code is still to be given.' }) },
    { examples: [{ second_factor_required: true }] },
  ),
  success: 'The password is right. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the email address or the password is wrong, or the request comes from another site.',
    429: tooManyAttempts,
  },
  run: ({ signIn, browser, body }) => signIn.withPassword(browser, body.email, body.password),
})
