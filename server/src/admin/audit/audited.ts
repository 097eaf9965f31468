/**
 * The closed sets of what the audit log records: operations and kinds of resources. The audit's filters refuse other
 * values, so that a mistyped filter is an error and not an empty list.
 */

/** Recorded by the `postern` command, besides `queue.hold` and `queue.release`. */
const commandOperations = [
  'audit.erase',
  'secrets.rewrap',
  'users.create',
  'users.issue-token',
  'users.link',
  'users.reset',
  'users.reset-password',
]

/** Every mutation of the administrative interface; list-audit.test.ts compares them. */
export const mutationOperations = [
  'api-keys.create',
  'api-keys.delete',
  'api-keys.edit',
  'api-keys.rotate',
  'domains.create',
  'domains.delete',
  'domains.edit',
  'domains.rotate',
  'domains.verify',
  'endpoints.create',
  'endpoints.delete',
  'endpoints.edit',
  'endpoints.replay',
  'endpoints.rotate',
  'endpoints.test',
  'members.create',
  'members.delete',
  'members.edit',
  'messages.cancel',
  'plans.create',
  'plans.edit',
  'projects.create',
  'projects.edit',
  'projects.set-billing',
  'queue.hold',
  'queue.release',
  'routing.create',
  'routing.delete',
  'routing.edit',
  'routing.request-confirmation',
  'suppressions.delete',
  'users.edit',
]

export const auditedOperations = [...mutationOperations, ...commandOperations].sort()

export const auditedResources = [
  'api_key',
  'domain',
  'endpoint',
  'master_key',
  'member',
  'message',
  'person',
  'plan',
  'project',
  'queue',
  'route',
  'suppression',
  'user',
]
