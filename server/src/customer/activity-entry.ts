import type { ActivityChange, ActivityEntry } from '../core/control/activity/activity.ts'
import type { Caller, UserCaller } from './caller.ts'

/** The request fields that the activity entry records in addition to the change. */
export interface Requested {
  requestId: string
  ip: string
  userAgent: string | null
}

export function entryOf(
  operation: string,
  { caller, requestId, ip, userAgent }: Requested & { caller: Caller | UserCaller },
  change: ActivityChange,
): ActivityEntry {
  const who =
    caller.kind === 'key'
      ? ({ type: 'api_key', id: caller.key.id, email: null } as const)
      : ({ type: 'user', id: caller.user.id, email: caller.user.email } as const)
  return { actor: { ...who, ip, userAgent }, requestId, operation, change }
}
