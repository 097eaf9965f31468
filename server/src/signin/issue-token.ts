import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const issueToken = signInOperation({
  id: 'auth.issue-token',
  method: 'POST',
  path: '/auth/token',
  summary: 'Issue an access token',
  description:
    'The token is valid for ten minutes. It becomes invalid earlier if the session ends or the user is disabled. Send it as `Authorization: Bearer`. Administrators must have completed two-factor authentication in the session.',
  needsSession: true,
  response: Type.Object({
    token: Type.String(),
    expires_at: Type.String({ format: 'date-time' }),
  }),
  success: 'The access token.',
  failures: {
    401: '`unauthenticated`: there is no session, an administrator has not completed two-factor authentication in the session, or the request comes from another site.',
  },
  async run({ signIn, browser }) {
    const { body, cookies } = await signIn.issueToken(browser)
    return { body: { token: body.token, expires_at: body.expiresAt.toISOString() }, cookies }
  },
})
