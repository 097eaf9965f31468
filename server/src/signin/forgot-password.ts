import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const forgotPassword = signInOperation({
  id: 'auth.forgot-password',
  method: 'POST',
  path: '/auth/password/forgot',
  summary: 'Request a password reset link',
  description:
    'Sends a link if the address belongs to an active account with a password. The response is the same for every address. The link can be used once and expires after one hour. An account receives at most five reset links per UTC day.',
  needsSession: false,
  storesText: true,
  body: Type.Object(
    { email: Type.String({ minLength: 3, maxLength: 254 }) },
    { additionalProperties: false, examples: [{ email: 'ada@example.com' }] },
  ),
  success: 'The request is accepted.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    404: '`not_found`: this installation does not send password reset links.',
    429: '`rate_limited`: too many requests. Try again after the time in `Retry-After`.',
  },
  run: ({ accounts, browser, body }) => accounts.forgotPassword(browser, body.email),
})
