import Type from 'typebox'
import { oneOf, Timestamp } from '../../shared/wire.ts'

/** People with an account. How they prove who they are is core/control/access's business. */
export const User = Type.Object(
  {
    id: Type.Integer(),
    email: Type.String(),
    name: Type.String(),
    role: oneOf(['user', 'admin']),
    is_active: Type.Boolean({ description: 'A user who is not active cannot sign in.' }),
    two_factor_enabled: Type.Boolean(),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'User', additionalProperties: false },
)
