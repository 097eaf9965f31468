import Type from 'typebox'
import { Member } from '../core/control/members/wire.ts'
import { signInOperation } from './operation.ts'

export const registerInvited = signInOperation({
  id: 'auth.join',
  method: 'POST',
  path: '/auth/join',
  summary: 'Accept an invitation without an account',
  description:
    'Makes an account with the address that was invited, and makes it a member of the project. No session is opened: sign in afterwards. A person with an account accepts the invitation at `POST /v1/invitations/accept`.',
  needsSession: false,
  storesText: true,
  body: Type.Object(
    {
      token: Type.String({ maxLength: 100, description: 'As it stands in the invitation mail.' }),
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
  success: 'The account is made, and its user is a member.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    404: '`not_found`: this is no invitation, or it was used, withdrawn or is too old.',
    409: '`already_exists`: there is an account with the address that was invited.',
    429: '`rate_limited`: too many requests; Retry-After says when to try again.',
  },
  run: ({ signIn, browser, body }) => signIn.join(browser, body),
})
