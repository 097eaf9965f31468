import Type from 'typebox'
import { OptionalPassword, signInOperation, tooManyAttempts } from './operation.ts'

export const deleteAccount = signInOperation({
  id: 'auth.delete-account',
  method: 'POST',
  path: '/auth/account/delete',
  summary: 'Delete your account',
  description:
    'Ends your memberships and sessions, and deletes your name, address and credentials. You cannot delete your account while you own projects; the message names them.',
  needsSession: true,
  body: Type.Object(
    { password: OptionalPassword },
    { additionalProperties: false, examples: [{ password: 'correct horse battery staple' }] },
  ),
  success: 'The account is deleted.',
  failures: {
    401: '`unauthenticated`: the password is wrong or missing, there is no session, a second factor is set up but was not verified in this session, or the request comes from another site.',
    409: '`in_use`: you own projects, or you are an administrator.',
    429: tooManyAttempts,
  },
  run: ({ accounts, browser, body }) => accounts.deleteAccount(browser, body.password),
})
