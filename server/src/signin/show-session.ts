import Type from 'typebox'
import { User } from '../core/control/users/wire.ts'
import { signInOperation } from './operation.ts'

const Time = Type.String({ format: 'date-time' })

export const showSession = signInOperation({
  id: 'auth.show-session',
  method: 'GET',
  path: '/auth/session',
  summary: 'Show the current session',
  description:
    'Using a session renews it, at most once per hour. A session expires 12 hours after its last renewal, and no later than one week after sign-in.',
  needsSession: true,
  response: Type.Object({
    user: Type.Object({
      id: Type.Integer(),
      email: Type.String(),
      name: Type.String(),
      role: Type.String({ description: 'The role in the service: `admin` or `user`.' }),
      rights: User.properties.rights,
      second_factor_enabled: Type.Boolean(),
      has_password: Type.Boolean({
        description: 'False for a user who signs in with passkeys or at an issuer only.',
      }),
    }),
    session: Type.Object({
      id: Type.Integer(),
      second_factor_at: Type.Union([Time, Type.Null()], {
        description: 'When the second factor was verified in this session.',
      }),
      expires_at: Time,
    }),
  }),
  success: 'The user and the session.',
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
