import Type from 'typebox'
import { oneOf, Timestamp } from '../../shared/wire.ts'

/** What an administrator can do. The table of operations is admin/rights.ts. */
export const rightsNames = ['full', 'support', 'billing', 'auditor'] as const

export type Rights = (typeof rightsNames)[number]

export const Rights = oneOf(rightsNames)

/** Null for users who are not administrators. */
export const rightsOf = (user: { role: string; rights: string }): Rights | null =>
  user.role === 'admin' ? (user.rights as Rights) : null

/** A person with an account. Authentication is in core/control/access. */
export const User = Type.Object(
  {
    id: Type.Integer(),
    email: Type.String(),
    name: Type.String(),
    role: oneOf(['user', 'admin']),
    rights: Type.Union([Rights, Type.Null()], {
      description: 'What an administrator can do. Null for users who are not administrators.',
    }),
    is_active: Type.Boolean({ description: 'Inactive users cannot sign in.' }),
    two_factor_enabled: Type.Boolean(),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'User', additionalProperties: false },
)
