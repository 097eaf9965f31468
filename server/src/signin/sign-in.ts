import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const signIn = signInOperation({
  id: 'auth.sign-in',
  method: 'POST',
  path: '/auth/sign-in',
  summary: 'Sign in with email and password',
  description:
    'If the user has set up two-factor authentication, `second_factor_required` is true and no session is created yet. The response sets a cookie that identifies the pending sign-in. Send a code to `auth.verify-totp` or `auth.verify-backup-code` within ten minutes.',
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
    { second_factor_required: Type.Boolean({ description: 'Whether a second-factor code is required.' }) },
    { examples: [{ second_factor_required: true }] },
  ),
  success: 'The password is correct. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the email address or the password is wrong, or the request comes from another site.',
    429: tooManyAttempts,
  },
  run: ({ signIn, browser, body }) => signIn.withPassword(browser, body.email, body.password),
})
