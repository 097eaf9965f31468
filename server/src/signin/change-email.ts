import Type from 'typebox'
import { OptionalPassword, signInOperation, tooManyAttempts } from './operation.ts'

export const changeEmail = signInOperation({
  id: 'auth.change-email',
  method: 'POST',
  path: '/auth/email',
  summary: 'Change your email address',
  description:
    'Emails a link to the new address. The address changes when the link is confirmed with `auth.confirm-email`, within 24 hours. The response is the same for every address; if the address has an account, the email says so.',
  needsSession: true,
  storesText: true,
  body: Type.Object(
    { email: Type.String({ minLength: 3, maxLength: 254 }), password: OptionalPassword },
    {
      additionalProperties: false,
      examples: [{ email: 'ada@example.org', password: 'correct horse battery staple' }],
    },
  ),
  success: 'The request is accepted.',
  failures: {
    401: '`unauthenticated`: the password is wrong or missing, there is no session, a second factor is set up but was not verified in this session, or the request comes from another site.',
    429: tooManyAttempts,
  },
  run: ({ accounts, browser, body }) => accounts.changeEmail(browser, body),
})
