import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const disableTotp = signInOperation({
  id: 'auth.disable-totp',
  method: 'POST',
  path: '/auth/totp/disable',
  summary: 'Remove your authenticator app',
  description:
    'The account then has no second factor, and its backup codes become invalid. Administrators cannot remove it. The response sets the cookie for a new session.',
  needsSession: true,
  body: Type.Object(
    { password: Type.String({ minLength: 1, maxLength: 128 }) },
    { additionalProperties: false, examples: [{ password: 'correct horse battery staple' }] },
  ),
  success: 'The second factor is removed. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the password is wrong, there is no session, a second factor is set up but was not verified in this session, or the request comes from another site.',
    404: '`not_found`: no second factor is set up.',
    409: '`in_use`: administrators need a second factor.',
    429: tooManyAttempts,
  },
  run: ({ secondFactors, browser, body }) => secondFactors.disableTotp(browser, body.password),
})
