import type { ApiKeyRow } from '../core/control/api-keys/api-keys.ts'
import { PosternError } from '../platform/errors.ts'
import type { OperationId } from './roles.ts'

/**
 * What an API key that is bound to a domain (`domain_id`) may do, by the id of the operation. The check at the door, the
 * pipeline and the test of it go by this table; an operation that is not in it does not compile.
 *
 *   domain    what belongs to the key's domain: anything else of the project is left out of lists, and is 404
 *   refused   it is about the whole project, or no key may do it at all
 *
 * Suppressions hold for all domains of a project, endpoints receive events of all of them, and usage counts them all: a
 * bound key reads and changes none of these.
 */
export const domainBindings: Record<OperationId, 'domain' | 'refused'> = {
  'projects.create': 'refused',
  'projects.list': 'refused',
  'projects.show': 'refused',
  'projects.edit': 'refused',
  'projects.delete': 'refused',

  'members.list': 'refused',
  'members.show': 'refused',
  'members.create': 'refused',
  'members.edit': 'refused',
  'members.delete': 'refused',

  'domains.list': 'domain',
  'domains.show': 'domain',
  'domains.create': 'refused',
  // But not its name (domains/edit-domain.ts): that is what the key is bound to.
  'domains.edit': 'domain',
  'domains.verify': 'domain',
  'domains.rotate': 'domain',
  'domains.delete': 'domain',

  'endpoints.list': 'refused',
  'endpoints.show': 'refused',
  'endpoints.create': 'refused',
  'endpoints.edit': 'refused',
  'endpoints.rotate': 'refused',
  'endpoints.test': 'refused',
  'endpoints.attempts': 'refused',
  'endpoints.replay': 'refused',
  'endpoints.delete': 'refused',

  'routing.list': 'domain',
  'routing.show': 'domain',
  'routing.match': 'domain',
  'routing.create': 'domain',
  'routing.edit': 'domain',
  'routing.request-confirmation': 'domain',
  'routing.delete': 'domain',

  'api-keys.list': 'refused',
  'api-keys.show': 'refused',
  'api-keys.create': 'refused',
  'api-keys.edit': 'refused',
  'api-keys.rotate': 'refused',
  'api-keys.delete': 'refused',

  // The sending checks see to these (core/mail/messages/sending-checks.ts), as they do for SMTP submission.
  'messages.send': 'domain',
  'messages.send-batch': 'domain',
  'messages.list': 'domain',
  'messages.show': 'domain',
  'messages.events': 'domain',
  'messages.cancel': 'domain',

  'suppressions.list': 'refused',
  'suppressions.show': 'refused',
  'suppressions.create': 'refused',
  'suppressions.delete': 'refused',

  'usage.show': 'refused',

  'activity.list': 'refused',

  'invitations.list': 'refused',
  'invitations.accept': 'refused',
}

export function requireBinding(operation: OperationId, { domain_id }: Pick<ApiKeyRow, 'domain_id'>): void {
  if (domain_id === null || domainBindings[operation] === 'domain') return
  throw new PosternError(
    'insufficient_scope',
    'This API key is bound to one domain, and this is about the whole project. Use a key that is bound to none.',
  )
}
