import type { Role } from '../core/control/members/wire.ts'
import { PosternError } from '../platform/errors.ts'

/**
 * Which members may do what, by the id of the operation. The check at the door and the test of it go by this table;
 * an operation that is not in it does not compile.
 *
 * `signed in`: no project is asked about, so every user may.
 */
const everyone: readonly Role[] = ['owner', 'admin', 'developer', 'viewer']
const builders: readonly Role[] = ['owner', 'admin', 'developer']
const managers: readonly Role[] = ['owner', 'admin']
const owner: readonly Role[] = ['owner']
const signedIn = 'signed in'

export const allowedRoles = {
  'projects.create': signedIn,
  'projects.list': signedIn,
  'projects.show': everyone,
  'projects.edit': managers,
  'projects.delete': owner,

  'members.list': everyone,
  'members.show': everyone,
  'members.create': managers,
  'members.edit': managers,
  // Everybody may leave; only managers remove somebody else (members/delete-member.ts).
  'members.delete': everyone,

  'domains.list': everyone,
  'domains.show': everyone,
  'domains.create': builders,
  'domains.edit': builders,
  'domains.verify': builders,
  'domains.rotate': builders,
  'domains.delete': builders,

  'endpoints.list': everyone,
  'endpoints.show': everyone,
  'endpoints.create': builders,
  'endpoints.edit': builders,
  'endpoints.rotate': builders,
  'endpoints.test': builders,
  'endpoints.attempts': everyone,
  'endpoints.replay': builders,
  'endpoints.delete': builders,

  'routing.list': everyone,
  'routing.show': everyone,
  'routing.match': everyone,
  'routing.create': builders,
  'routing.edit': builders,
  'routing.delete': builders,
  'routing.request-confirmation': builders,

  'api-keys.list': everyone,
  'api-keys.show': everyone,
  'api-keys.create': builders,
  'api-keys.edit': builders,
  'api-keys.rotate': builders,
  'api-keys.delete': builders,

  'messages.send': builders,
  'messages.send-batch': builders,
  'messages.list': everyone,
  'messages.show': everyone,
  'messages.events': everyone,
  'messages.cancel': builders,

  'suppressions.list': everyone,
  'suppressions.show': everyone,
  'suppressions.create': builders,
  'suppressions.delete': builders,

  'usage.show': everyone,

  // It names members with their addresses, and shows what keys and webhooks are.
  'activity.list': managers,

  'invitations.list': signedIn,
  'invitations.accept': signedIn,
} satisfies Record<string, readonly Role[] | typeof signedIn>

export type OperationId = keyof typeof allowedRoles

export const isManager = (role: Role): boolean => managers.includes(role)

export function requireRole(operation: OperationId, role: Role): void {
  const allowed: readonly Role[] | typeof signedIn = allowedRoles[operation]
  if (allowed === signedIn || allowed.includes(role)) return
  throw new PosternError(
    'insufficient_role',
    `This takes the role ${listed(allowed)} in the project, and yours is ${role}.`,
  )
}

const listed = (roles: readonly Role[]): string =>
  roles.length === 1 ? (roles[0] ?? '') : `${roles.slice(0, -1).join(', ')} or ${roles.at(-1)}`
