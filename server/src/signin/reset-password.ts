import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const resetPassword = signInOperation({
  id: 'auth.reset-password',
  method: 'POST',
  path: '/auth/password/reset',
  summary: 'Reset the password with a link',
  description:
    "The token is the part of the link after `#`. All of the user's sessions are revoked, and access tokens issued from them become invalid. No session is created; sign in afterwards, with the second factor if one is set up.",
  needsSession: false,
  body: Type.Object(
    {
      token: Type.String({ maxLength: 100, description: 'The token from the link.' }),
      new_password: Type.String({ minLength: 12, maxLength: 128 }),
    },
    {
      additionalProperties: false,
      examples: [
        {
          token: 'pwr_0gYk7Tn5l2f9xq3Zb8s1uWcR4vEaJhMdPiLoNtKySXw',
          new_password: 'a much better password',
        },
      ],
    },
  ),
  success: 'The password is changed.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    404: '`not_found`: the link is invalid, has already been used, or has expired.',
    429: '`rate_limited`: too many requests. Try again after the time in `Retry-After`.',
  },
  run: ({ accounts, browser, body }) => accounts.resetPassword(browser, body.token, body.new_password),
})
