import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const drawToken = signInOperation({
  id: 'auth.draw-token',
  method: 'POST',
  path: '/auth/token',
  summary: 'Draw a ten-minute access token from the session.',
  response: Type.Object({ token: Type.String(), expires_at: Type.String() }),
  async run({ signIn, browser }) {
    const { body, cookies } = await signIn.drawToken(browser)
    return { body: { token: body.token, expires_at: body.expiresAt.toISOString() }, cookies }
  },
})
