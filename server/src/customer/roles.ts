import type { Role } from '../core/control/members/wire.ts'
import { PosternError } from '../platform/errors.ts'

/**
 * The roles that can call each operation. Authentication and its test use this table; an operation without an entry does
 * not compile.
 *
 * `signed in`: the operation is outside any project, so every signed-in user can call it.
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
  // Every member can leave; only managers can remove others (members/delete-member.ts).
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
  // A payload can contain an inbound message.
  'delivery-attempts.show': builders,
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
  'messages.explain': everyone,
  'messages.cancel': builders,

  'suppressions.list': everyone,
  'suppressions.show': everyone,
  'suppressions.export': everyone,
  'suppressions.create': builders,
  'suppressions.import': builders,
  'suppressions.delete': builders,

  'usage.show': everyone,
  'mailbox-providers.show': everyone,
  'sending.explain': everyone,

  'notices.list': everyone,
  'notices.show': everyone,
  'notices.appeal': managers,

  // The activity contains members' addresses and the configuration of keys and webhooks.
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
    `This requires the ${listed(allowed)} role in the project. Your role is ${role}.`,
  )
}

const listed = (roles: readonly Role[]): string =>
  roles.length === 1 ? (roles[0] ?? '') : `${roles.slice(0, -1).join(', ')} or ${roles.at(-1)}`
