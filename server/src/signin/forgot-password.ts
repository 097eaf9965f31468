import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const forgotPassword = signInOperation({
  id: 'auth.forgot-password',
  method: 'POST',
  path: '/auth/password/forgot',
  summary: 'Request a link to set a new password',
  description:
    'Mails a link to the address if an active account with a password has it. The answer is the same for every address. The link can be used once and expires after an hour. An account gets at most five of these mails in a UTC day.',
  needsSession: false,
  storesText: true,
  body: Type.Object(
    { email: Type.String({ minLength: 3, maxLength: 254 }) },
    { additionalProperties: false, examples: [{ email: 'ada@example.com' }] },
  ),
  success: 'The request is accepted.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    404: '`not_found`: this installation mails no links.',
    429: '`rate_limited`: too many requests; Retry-After says when to try again.',
  },
  run: ({ signIn, browser, body }) => signIn.forgotPassword(browser, body.email),
})
