import type { ApiKeyRow } from '../core/control/api-keys/api-keys.ts'
import { PosternError } from '../platform/errors.ts'
import type { OperationId } from './roles.ts'

/**
 * What an API key that is bound to a domain (`domain_id`) can do, by operation id. Authentication, the pipeline and their
 * test use this table; an operation without an entry does not compile.
 *
 *   domain    limited to the key's domain: other domains' resources are omitted from lists and return 404
 *   refused   the operation concerns the whole project, or no API key can call it
 *
 * Suppressions, endpoints, usage and delivery figures concern all of a project's domains, so a bound key cannot read or change them.
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
  // The key cannot change the domain's name, because it is bound to that name (domains/edit-domain.ts).
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
  'delivery-attempts.show': 'refused',
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

  // Enforced by the sending checks (core/mail/messages/sending-checks.ts), as for SMTP submission.
  'messages.send': 'domain',
  'messages.send-batch': 'domain',
  'messages.list': 'domain',
  'messages.show': 'domain',
  'messages.events': 'domain',
  // Contains the length of the queue and the interventions of the whole project.
  'messages.explain': 'refused',
  'messages.cancel': 'domain',

  'suppressions.list': 'refused',
  'suppressions.show': 'refused',
  'suppressions.export': 'refused',
  'suppressions.create': 'refused',
  'suppressions.import': 'refused',
  'suppressions.delete': 'refused',

  'usage.show': 'refused',
  'mailbox-providers.show': 'refused',
  'sending.explain': 'refused',

  'notices.list': 'refused',
  'notices.show': 'refused',
  'notices.appeal': 'refused',

  'activity.list': 'refused',

  'invitations.list': 'refused',
  'invitations.accept': 'refused',
}

export function requireBinding(operation: OperationId, { domain_id }: Pick<ApiKeyRow, 'domain_id'>): void {
  if (domain_id === null || domainBindings[operation] === 'domain') return
  throw new PosternError(
    'insufficient_scope',
    'This API key is bound to one domain, but this operation affects the whole project. Use a key that is not bound to a domain.',
  )
}
