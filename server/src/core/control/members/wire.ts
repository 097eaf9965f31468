/**
 * Members of a project. A person whom a customer adds is invited (no `user_id`) until they accept. An account that an
 * administrator adds becomes a member immediately. Exactly one member is the owner, the project's `user_id`. Ownership
 * changes only with a transfer of the project.
 */
import Type from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

export const roles = ['owner', 'admin', 'developer', 'viewer'] as const
export type Role = (typeof roles)[number]

/** Ownership cannot be assigned. It follows the project's `user_id`. */
export const AssignableRole = oneOf(['admin', 'developer', 'viewer'])

/** An invitation as the invited person sees it. */
export const PendingInvitation = Type.Object(
  {
    id: Type.Integer({ description: 'The `id` for `invitations.accept`.' }),
    project_id: Type.Integer(),
    project_name: Type.String(),
    role: oneOf(roles),
    invited_at: Timestamp,
    expires_at: Timestamp,
  },
  { title: 'PendingInvitation', additionalProperties: false },
)

export const Member = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    user_id: nullable(Type.Integer({ description: 'Null until the invitation is accepted.' })),
    email: Type.String(),
    name: nullable(Type.String()),
    role: oneOf(roles),
    invited_at: Timestamp,
    joined_at: nullable(Timestamp),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Member', additionalProperties: false },
)
