/** Operations that only `postern` commands record. Commands also record `queue.hold` and `queue.release`. */
export const shellOperations = [
  'audit.erase',
  'secrets.rewrap',
  'users.create',
  'users.issue-token',
  'users.link',
  'users.reset',
  'users.reset-password',
] as const

export type ShellOperation = (typeof shellOperations)[number]
