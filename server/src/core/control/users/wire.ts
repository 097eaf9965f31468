import Type from 'typebox'
import { oneOf, Timestamp } from '../../shared/wire.ts'

/** A person with an account. Authentication is in core/control/access. */
export const User = Type.Object(
  {
    id: Type.Integer(),
    email: Type.String(),
    name: Type.String(),
    role: oneOf(['user', 'admin']),
    is_active: Type.Boolean({ description: 'Inactive users cannot sign in.' }),
    two_factor_enabled: Type.Boolean(),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'User', additionalProperties: false },
)
