import type { ApiKeyScope } from '../core/control/api-keys/scopes.ts'
import { PosternError } from '../platform/errors.ts'
import type { OperationId } from './roles.ts'

/**
 * The scope that an API key needs for each operation. `null`: no API key can call the operation. Authentication and its test
 * use this table; an operation without an entry does not compile.
 *
 * No scope includes another: a key that reads and writes needs both.
 */
export const neededScopes: Record<OperationId, ApiKeyScope | null> = {
  'projects.create': null,
  'projects.list': null,
  'projects.show': null,
  'projects.edit': null,
  'projects.delete': null,

  'members.list': null,
  'members.show': null,
  'members.create': null,
  'members.edit': null,
  'members.delete': null,

  'domains.list': 'domains:read',
  'domains.show': 'domains:read',
  'domains.create': 'domains:write',
  'domains.edit': 'domains:write',
  'domains.verify': 'domains:write',
  'domains.rotate': 'domains:write',
  'domains.delete': 'domains:write',

  'endpoints.list': 'endpoints:read',
  'endpoints.show': 'endpoints:read',
  'endpoints.create': 'endpoints:write',
  'endpoints.edit': 'endpoints:write',
  'endpoints.rotate': 'endpoints:write',
  'endpoints.test': 'endpoints:write',
  'endpoints.attempts': 'endpoints:read',
  // Reveals what the key could send to a receiver of its own.
  'delivery-attempts.show': 'endpoints:write',
  'endpoints.replay': 'endpoints:write',
  'endpoints.delete': 'endpoints:write',

  'routing.list': 'routing:read',
  'routing.show': 'routing:read',
  'routing.match': 'routing:read',
  'routing.create': 'routing:write',
  'routing.edit': 'routing:write',
  'routing.delete': 'routing:write',
  'routing.request-confirmation': 'routing:write',

  // A key must not be able to grant more than its own scopes.
  'api-keys.list': null,
  'api-keys.show': null,
  'api-keys.create': null,
  'api-keys.edit': null,
  'api-keys.rotate': null,
  'api-keys.delete': null,

  'messages.send': 'messages:send',
  'messages.send-batch': 'messages:send',
  'messages.list': 'messages:read',
  'messages.show': 'messages:read',
  'messages.events': 'messages:read',
  'messages.explain': 'messages:read',
  'messages.cancel': 'messages:send',

  'suppressions.list': 'suppressions:read',
  'suppressions.show': 'suppressions:read',
  'suppressions.export': 'suppressions:read',
  'suppressions.create': 'suppressions:write',
  'suppressions.import': 'suppressions:write',
  'suppressions.delete': 'suppressions:write',

  'usage.show': 'usage:read',
  'mailbox-providers.show': 'usage:read',
  // Reveals what sending a message reveals.
  'sending.explain': 'messages:send',

  'notices.list': null,
  'notices.show': null,
  'notices.appeal': null,

  'activity.list': null,

  'invitations.list': null,
  'invitations.accept': null,
}

export function requireScope(operation: OperationId, scopes: readonly string[]): void {
  const needed = neededScopes[operation]
  if (needed !== null && scopes.includes(needed)) return
  throw new PosternError(
    'insufficient_scope',
    needed === null
      ? "API keys cannot call this operation. Use a project member's access token."
      : `This requires an API key with the scope ${needed}.`,
  )
}
