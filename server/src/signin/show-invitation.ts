import Type from 'typebox'
import { Timestamp } from '../core/shared/wire.ts'
import { signInOperation } from './operation.ts'

export const showInvitation = signInOperation({
  id: 'auth.show-invitation',
  method: 'POST',
  path: '/auth/invitation',
  summary: 'Show the invitation of a token',
  description:
    'For the page that the link in an invitation opens: what the person is invited to, and whether the invited address has an account. The token proves access to the mailbox of the address.',
  needsSession: false,
  body: Type.Object(
    { token: Type.String({ maxLength: 100, description: 'The token from the invitation.' }) },
    {
      additionalProperties: false,
      examples: [{ token: 'inv_0gYk7Tn5l2f9xq3Zb8s1uWcR4vEaJhMdPiLoNtKySXw' }],
    },
  ),
  response: Type.Object({
    email: Type.String({ description: 'The invited address.' }),
    project_id: Type.Integer(),
    project_name: Type.String(),
    role: Type.String(),
    expires_at: Timestamp,
    has_account: Type.Boolean({ description: 'Whether there is an account with the invited address.' }),
  }),
  success: 'The invitation.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    404: '`not_found`: the invitation is invalid, has already been used, was withdrawn, or has expired.',
  },
  run: ({ accounts, body }) => accounts.showInvitation(body.token),
})
