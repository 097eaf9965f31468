import Type from 'typebox'
import { signInOperation } from './operation.ts'

const Time = Type.String({ format: 'date-time' })
const NullableText = Type.Union([Type.String(), Type.Null()])

export const listSessions = signInOperation({
  id: 'auth.list-sessions',
  method: 'GET',
  path: '/auth/sessions',
  summary: 'List your active sessions',
  description: 'All sessions, newest first. The list is not paginated.',
  needsSession: true,
  response: Type.Object({
    data: Type.Array(
      Type.Object({
        id: Type.Integer(),
        is_current: Type.Boolean({ description: 'Whether this is the current session.' }),
        second_factor_at: Type.Union([Time, Type.Null()], {
          description: 'When the second factor was verified in this session.',
        }),
        ip_address: NullableText,
        user_agent: NullableText,
        created_at: Time,
        expires_at: Time,
      }),
    ),
  }),
  success: 'The sessions.',
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
