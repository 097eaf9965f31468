import type { Rights } from '../../core/control/users/wire.ts'

/**
 * The documented rights of every administrative operation, in addition to `full`, which allows everything. The table is
 * written by hand and never derived from the code under test. Each new operation adds one line.
 */
type Limited = Exclude<Rights, 'full'>

const read: readonly Limited[] = ['support', 'billing', 'auditor']
const none: readonly Limited[] = []

export const expectedRights: Readonly<Record<string, readonly Limited[]>> = {
  'overview.show': read,
  'search.find': read,
  'trace.find': read,
  'messages.search': read,

  'projects.list': read,
  'projects.volumes': read,
  'projects.show': read,
  'projects.create': none,
  'projects.edit': ['support', 'billing'],
  'projects.set-billing': ['billing'],
  'sending.explain': read,

  'members.list': read,
  'members.show': read,
  'members.create': none,
  'members.edit': none,
  'members.delete': none,

  'domains.list': read,
  'domains.show': read,
  'domains.create': none,
  'domains.edit': none,
  'domains.verify': none,
  'domains.rotate': none,
  'domains.delete': none,

  'endpoints.list': read,
  'endpoints.show': read,
  'endpoints.attempts': read,
  'delivery-attempts.show': read,
  'endpoints.create': none,
  'endpoints.edit': none,
  'endpoints.rotate': none,
  'endpoints.test': none,
  'endpoints.replay': none,
  'endpoints.delete': none,

  'routing.list': read,
  'routing.show': read,
  'routing.match': read,
  'routing.create': none,
  'routing.edit': none,
  'routing.delete': none,
  'routing.request-confirmation': none,

  'api-keys.list': read,
  'api-keys.show': read,
  'api-keys.create': none,
  'api-keys.edit': none,
  'api-keys.rotate': none,
  'api-keys.delete': none,

  'messages.list': read,
  'messages.show': read,
  'messages.events': read,
  'messages.explain': read,
  'messages.cancel': none,

  'suppressions.list': read,
  'suppressions.create': ['support'],
  'suppressions.delete': ['support'],
  'suppressions.import': ['support'],

  'platform-suppressions.list': read,
  'platform-suppressions.show': read,
  'platform-suppressions.create': none,
  'platform-suppressions.import': none,
  'platform-suppressions.delete': none,

  'evidence.list': read,
  'evidence.create': read,
  'evidence.show': read,
  'evidence.download': read,

  'notes.list': read,
  'notes.show': read,
  'notes.create': ['support'],
  'notes.edit': ['support'],
  'notes.delete': ['support'],

  'activity.list': read,
  'usage.show': read,
  'mailbox-providers.show': read,
  'reputation.show': read,

  'queue.show': read,
  'queue.hold': ['support'],
  'queue.release': ['support'],
  'queue.discard': none,

  'discards.list': read,
  'discards.show': read,
  'discards.stop': none,
  'discards.resume': none,

  'interventions.list': read,
  'interventions.show': read,
  'interventions.create': ['support'],
  'interventions.edit': ['support'],
  'interventions.end': ['support'],

  'reversals.list': read,
  'reversals.show': read,
  'reversals.delete': none,

  'bulk.list': read,
  'bulk.show': read,
  'bulk.create': none,
  'bulk.stop': none,
  'bulk.resume': none,

  'plans.list': read,
  'plans.show': read,
  'plans.create': none,
  'plans.edit': none,

  'policies.list': read,
  'policies.show': read,
  'policies.backtest': read,
  'policies.create': none,
  'policies.edit': none,
  'policies.delete': none,
  'firings.list': read,

  'audit.list': read,
  'audit.export': read,
  'audit.verify': read,
  'audit.show': read,
  'audit.undo': none,
  'denials.list': read,
  'audit.lookups': read,

  'users.list': read,
  'users.show': read,
  'users.edit': none,
}

/** The fields of `projects.edit`, and the limited rights that can change each of them. */
export const expectedProjectFields: Readonly<Record<string, readonly Limited[]>> = {
  name: none,
  user_id: none,
  is_locked: ['support'],
  plan_id: ['billing'],
  admin_plan_id: ['billing'],
  admin_subscription_status: ['billing'],
  allow_service_mta: none,
  reputation_score: none,
}
