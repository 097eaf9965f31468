/** Audited operations that no HTTP request makes. */

/** Operations that only `postern` commands record. Commands also record `queue.hold`, `queue.release` and `policies.edit`. */
export const shellOperations = [
  'audit.erase',
  'secrets.rewrap',
  'users.create',
  'users.issue-token',
  'users.link',
  'users.reset',
  'users.reset-password',
  'users.reset-second-factor',
  'users.unlink',
] as const

export type ShellOperation = (typeof shellOperations)[number]

/**
 * Operations that workers perform: something expires, a gradual release is complete, the breaker of a policy trips,
 * or the administrator who started a bulk action loses the right to it.
 * The actor is the system.
 */
export const systemOperations = [
  'bulk.interrupt',
  'interventions.drain',
  'interventions.expire',
  'policies.trip',
  'projects.revert',
] as const

export type SystemOperation = (typeof systemOperations)[number]
