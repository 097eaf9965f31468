import { oneOf } from '../../core/wire.ts'

/** Ownership is not a role that is given out: it moves with the project's `user_id`. */
export const AssignableRole = oneOf(['admin', 'developer', 'viewer'], {
  description: "The owner is changed by editing the project's `user_id`.",
})
