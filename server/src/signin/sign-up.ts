import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const signUp = signInOperation({
  id: 'auth.sign-up',
  method: 'POST',
  path: '/auth/sign-up',
  summary: 'Sign up',
  description:
    'Emails a link to the address. The account is created when the link is confirmed with `auth.confirm-sign-up`, within 24 hours. The response is the same for every address; if the address has an account, the email says so. Available only if the operator allows sign-ups (`sign_up` in `installation.show`).',
  needsSession: false,
  storesText: true,
  body: Type.Object(
    {
      email: Type.String({ minLength: 3, maxLength: 254 }),
      name: Type.String({ minLength: 1, maxLength: 100 }),
      password: Type.String({ minLength: 12, maxLength: 128 }),
    },
    {
      additionalProperties: false,
      examples: [{ email: 'grace@example.com', name: 'Grace', password: 'correct horse battery staple' }],
    },
  ),
  success: 'The request is accepted.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    404: '`not_found`: this installation does not accept sign-ups.',
    429: '`rate_limited`: too many requests. Try again after the time in `Retry-After`.',
  },
  run: ({ accounts, browser, body }) => accounts.signUp(browser, body),
})
