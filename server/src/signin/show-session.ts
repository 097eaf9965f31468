import Type from 'typebox'
import { signInOperation } from './operation.ts'

export const showSession = signInOperation({
  id: 'auth.show-session',
  method: 'GET',
  path: '/auth/session',
  summary: 'Who is signed in here, and how.',
  response: Type.Object({
    user: Type.Object({
      id: Type.Integer(),
      email: Type.String(),
      name: Type.String(),
      role: Type.String(),
      second_factor_enabled: Type.Boolean(),
    }),
    session: Type.Object({
      id: Type.Integer(),
      second_factor_at: Type.Union([Type.String(), Type.Null()]),
      expires_at: Type.String(),
    }),
  }),
  async run({ signIn, browser }) {
    const { body, cookies } = await signIn.current(browser)
    const { id, second_factor_at, expires_at } = body.session
    const session = {
      id,
      second_factor_at: second_factor_at?.toISOString() ?? null,
      expires_at: expires_at.toISOString(),
    }
    return { body: { user: body.user, session }, cookies }
  },
})
