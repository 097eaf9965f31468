import Type from 'typebox'
import { signInOperation, tooManyAttempts } from './operation.ts'

export const confirmSignUp = signInOperation({
  id: 'auth.confirm-sign-up',
  method: 'POST',
  path: '/auth/sign-up/confirm',
  summary: 'Confirm a sign-up with a link',
  description:
    'Creates the account and signs in. The token is the part of the link after `#`, and the password is the one that was sent with `auth.sign-up`.',
  needsSession: false,
  body: Type.Object(
    {
      token: Type.String({ maxLength: 100, description: 'The token from the link.' }),
      password: Type.String({ minLength: 1, maxLength: 128 }),
    },
    {
      additionalProperties: false,
      examples: [
        {
          token: 'sup_0gYk7Tn5l2f9xq3Zb8s1uWcR4vEaJhMdPiLoNtKySXw',
          password: 'correct horse battery staple',
        },
      ],
    },
  ),
  success: 'The account is created and the session is active. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the password is wrong, or the request comes from another site.',
    404: '`not_found`: the link is invalid, has already been used, or has expired.',
    409: '`already_exists`: an account with the address already exists.',
    429: tooManyAttempts,
  },
  run: ({ accounts, browser, body }) => accounts.confirmSignUp(browser, body),
})
