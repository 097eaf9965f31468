import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const confirmEmail = signInOperation({
  id: 'auth.confirm-email',
  method: 'POST',
  path: '/auth/email/confirm',
  summary: 'Confirm a new email address with a link',
  description:
    'The token is the part of the link after `#`. The account then has the new address, and a link to undo the change, which is valid for seven days, is emailed to the old address.',
  needsSession: false,
  body: Type.Object(
    { token: Type.String({ maxLength: 100, description: 'The token from the link.' }) },
    {
      additionalProperties: false,
      examples: [{ token: 'eml_0gYk7Tn5l2f9xq3Zb8s1uWcR4vEaJhMdPiLoNtKySXw' }],
    },
  ),
  success: 'The address is changed.',
  failures: {
    401: '`unauthenticated`: the request comes from another site.',
    404: '`not_found`: the link is invalid, has already been used, or has expired.',
    409: '`already_exists`: another account has the address.',
  },
  run: ({ accounts, browser, body }) => accounts.confirmEmail(browser, body.token),
})
