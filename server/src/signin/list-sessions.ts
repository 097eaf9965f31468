import Type from 'typebox'
import { signInOperation } from './operation.ts'

const NullableText = Type.Union([Type.String(), Type.Null()])

export const listSessions = signInOperation({
  id: 'auth.list-sessions',
  method: 'GET',
  path: '/auth/sessions',
  summary: 'The living sessions of the user who is signed in, newest first.',
  response: Type.Object({
    data: Type.Array(
      Type.Object({
        id: Type.Integer(),
        is_current: Type.Boolean(),
        second_factor_at: NullableText,
        ip_address: NullableText,
        user_agent: NullableText,
        created_at: Type.String(),
        expires_at: Type.String(),
      }),
    ),
  }),
  async run({ signIn, browser }) {
    const { body, cookies } = await signIn.listSessions(browser)
    const data = body.map((session) => ({
      ...session,
      second_factor_at: session.second_factor_at?.toISOString() ?? null,
      created_at: session.created_at.toISOString(),
      expires_at: session.expires_at.toISOString(),
    }))
    return { body: { data }, cookies }
  },
})
