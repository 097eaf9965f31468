import type { Rights } from '../core/control/users/wire.ts'
import { PosternError } from '../platform/errors.ts'

/**
 * The rights that allow each operation. Authentication, the OpenAPI document (`x-rights`) and the console use this table;
 * an operation without an entry does not compile.
 *
 * Every administrator reads everything. Operations that reveal a secret are never for `support` or `billing`.
 */
const everyone: readonly Rights[] = ['full', 'support', 'billing', 'auditor']
const support: readonly Rights[] = ['full', 'support']
const billing: readonly Rights[] = ['full', 'billing']
const supportAndBilling: readonly Rights[] = ['full', 'support', 'billing']
const full: readonly Rights[] = ['full']

export const allowedRights = {
  'overview.show': everyone,
  'search.find': everyone,
  'trace.find': everyone,
  'messages.search': everyone,

  'projects.list': everyone,
  'projects.volumes': everyone,
  'projects.create': full,
  'projects.show': everyone,
  // Limited to some fields (`allowedFields`).
  'projects.edit': supportAndBilling,
  'projects.set-billing': billing,
  'sending.explain': everyone,

  'members.list': everyone,
  'members.create': full,
  'members.show': everyone,
  'members.edit': full,
  'members.delete': full,

  'activity.list': everyone,

  'domains.list': everyone,
  'domains.create': full,
  'domains.show': everyone,
  'domains.edit': full,
  'domains.verify': full,
  'domains.rotate': full,
  'domains.delete': full,

  'endpoints.list': everyone,
  'endpoints.create': full,
  'endpoints.show': everyone,
  'endpoints.edit': full,
  'endpoints.rotate': full,
  'endpoints.test': full,
  'endpoints.attempts': everyone,
  'delivery-attempts.show': everyone,
  'endpoints.replay': full,
  'endpoints.delete': full,

  'routing.list': everyone,
  'routing.create': full,
  'routing.show': everyone,
  'routing.edit': full,
  'routing.delete': full,
  'routing.request-confirmation': full,
  'routing.match': everyone,

  'api-keys.list': everyone,
  'api-keys.create': full,
  'api-keys.show': everyone,
  'api-keys.edit': full,
  'api-keys.rotate': full,
  'api-keys.delete': full,

  'messages.list': everyone,
  'messages.show': everyone,
  'messages.explain': everyone,
  'messages.events': everyone,
  'messages.cancel': full,

  'suppressions.list': everyone,
  'suppressions.create': support,
  'suppressions.delete': support,
  'suppressions.import': support,

  'platform-suppressions.list': everyone,
  'platform-suppressions.create': full,
  'platform-suppressions.import': full,
  'platform-suppressions.show': everyone,
  'platform-suppressions.delete': full,

  'evidence.list': everyone,
  'evidence.create': everyone,
  'evidence.show': everyone,
  'evidence.download': everyone,

  'notes.list': everyone,
  'notes.create': support,
  'notes.show': everyone,
  'notes.edit': support,
  'notes.delete': support,

  'usage.show': everyone,
  'mailbox-providers.show': everyone,
  'reputation.show': everyone,

  'queue.show': everyone,
  'queue.hold': support,
  'queue.release': support,
  'queue.discard': full,

  'discards.list': everyone,
  'discards.show': everyone,
  'discards.stop': full,
  'discards.resume': full,

  'interventions.list': everyone,
  'interventions.create': support,
  'interventions.show': everyone,
  'interventions.edit': support,
  'interventions.end': support,

  'reversals.list': everyone,
  'reversals.show': everyone,
  'reversals.delete': full,

  'bulk.list': everyone,
  'bulk.create': full,
  'bulk.show': everyone,
  'bulk.stop': full,
  'bulk.resume': full,

  'plans.list': everyone,
  'plans.create': full,
  'plans.show': everyone,
  'plans.edit': full,

  'policies.list': everyone,
  'policies.create': full,
  'policies.show': everyone,
  'policies.edit': full,
  'policies.delete': full,
  'policies.backtest': everyone,
  'firings.list': everyone,

  'users.list': everyone,
  'users.show': everyone,
  'users.edit': full,

  'audit.list': everyone,
  'audit.export': everyone,
  'audit.verify': everyone,
  'audit.show': everyone,
  'audit.undo': full,
  'denials.list': everyone,
  'audit.lookups': everyone,
} satisfies Record<string, readonly Rights[]>

export type OperationId = keyof typeof allowedRights

type Fields = Readonly<Partial<Record<Rights, readonly string[]>>>

/** The fields that rights other than `full` can change. Operations that are not listed are not limited to fields. */
export const allowedFields: Readonly<Partial<Record<OperationId, Fields>>> = {
  'projects.edit': {
    support: ['is_locked'],
    billing: ['plan_id', 'admin_plan_id', 'admin_subscription_status'],
  },
}

export const isForEveryone = (operation: OperationId): boolean => allowedRights[operation] === everyone

/** Neither changes a field of the resource. */
const accompanying: ReadonlySet<string> = new Set(['reason', 'expires_at'])

export function requireRights(operation: OperationId, rights: Rights): void {
  const allowed: readonly Rights[] = allowedRights[operation]
  if (!allowed.includes(rights)) throw insufficient('This', allowed, rights)
}

/** Called as soon as the body is parsed. The schema rejects a body that is not an object. */
export function requireRightsForFields(operation: OperationId, rights: Rights, body: unknown): void {
  const allowed = allowedFields[operation]
  if (!allowed?.[rights] || typeof body !== 'object' || body === null) return
  const mayChange = (one: Rights, field: string) => allowed[one]?.includes(field) ?? true
  const denied = Object.keys(body).find((field) => !accompanying.has(field) && !mayChange(rights, field))
  if (denied === undefined) return
  const needed = allowedRights[operation].filter((one) => mayChange(one, denied))
  throw insufficient(`Changing "${denied}"`, needed, rights)
}

const insufficient = (what: string, needed: readonly Rights[], rights: Rights): PosternError =>
  new PosternError(
    'insufficient_rights',
    `${what} requires ${oneOf.format(needed)} rights. You have ${rights} rights. Ask an administrator with full rights.`,
  )

const oneOf = new Intl.ListFormat('en-GB', { type: 'disjunction' })
