import { signInOperation } from './operation.ts'

export const endOtherSessions = signInOperation({
  id: 'auth.end-other-sessions',
  method: 'DELETE',
  path: '/auth/sessions',
  summary: 'Revoke all your other sessions',
  description:
    'Access tokens issued from these sessions become invalid immediately. The current session stays.',
  needsSession: true,
  success: 'The other sessions are revoked.',
  run: ({ signIn, browser }) => signIn.endOtherSessions(browser),
})
