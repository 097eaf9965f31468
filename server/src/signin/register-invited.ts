import Type from 'typebox'
import { Member } from '../core/control/members/wire.ts'
import { signInOperation } from './operation.ts'

export const registerInvited = signInOperation({
  id: 'auth.register-invited',
  method: 'POST',
  path: '/auth/register',
  summary: 'Register with an invitation',
  description:
    'Creates an account with the invited address, adds it to the project and signs in. If you already have an account, accept the invitation with `POST /v1/invitations/accept`.',
  needsSession: false,
  storesText: true,
  body: Type.Object(
    {
      token: Type.String({ maxLength: 100, description: 'The token from the invitation.' }),
      name: Type.String({ minLength: 1, maxLength: 100 }),
      password: Type.String({ minLength: 12, maxLength: 128 }),
    },
    {
      additionalProperties: false,
      examples: [
        {
          token: 'inv_0gYk7Tn5l2f9xq3Zb8s1uWcR4vEaJhMdPiLoNtKySXw',
          name: 'Grace',
          password: 'correct horse battery staple',
        },
      ],
    },
  ),
  response: Member,
  success: 'The account is created and added to the project. A cookie is set.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    404: '`not_found`: the invitation is invalid, has already been used, was withdrawn, or has expired.',
    409: '`already_exists`: an account with the invited address already exists.',
    429: '`rate_limited`: too many requests. Try again after the time in `Retry-After`.',
  },
  run: ({ accounts, browser, body }) => accounts.registerInvited(browser, body),
})
