import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const issueToken = signInOperation({
  id: 'auth.draw-token',
  method: 'POST',
  path: '/auth/token',
  summary: 'Draw an access token from the session',
  description:
    'It lives ten minutes, and ends earlier with its session or when the user is disabled. Send it as `Authorization: Bearer`. An administrator draws tokens only from a session that was opened with a second factor.',
  needsSession: true,
  response: Type.Object({
    token: Type.String(),
    expires_at: Type.String({ format: 'date-time' }),
  }),
  success: 'A token.',
  failures: {
    401: '`unauthenticated`: nobody is signed in here, an administrator gave no second factor, or the request comes from another site.',
  },
  async run({ signIn, browser }) {
    const { body, cookies } = await signIn.drawToken(browser)
    return { body: { token: body.token, expires_at: body.expiresAt.toISOString() }, cookies }
  },
})
