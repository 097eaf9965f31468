import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const undoEmail = signInOperation({
  id: 'auth.undo-email',
  method: 'POST',
  path: '/auth/email/undo',
  summary: 'Undo a change of the email address with a link',
  description:
    'The token is the part of the link after `#`, from the message to the old address. The account has the old address again, all of its sessions are revoked, and all links that were emailed for it become invalid.',
  needsSession: false,
  body: Type.Object(
    { token: Type.String({ maxLength: 100, description: 'The token from the link.' }) },
    {
      additionalProperties: false,
      examples: [{ token: 'emu_0gYk7Tn5l2f9xq3Zb8s1uWcR4vEaJhMdPiLoNtKySXw' }],
    },
  ),
  success: 'The old address is restored.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    404: '`not_found`: the link is invalid, has already been used, or has expired.',
    409: '`already_exists`: another account has the address.',
  },
  run: ({ accounts, browser, body }) => accounts.undoEmail(browser, body.token),
})
