import type { Change } from '../../core/control/audit/record.ts'

/** The list has no id. The address is not in the chain. */
export const platformChange = (before: object | null, after: object | null): Change => ({
  resource: 'platform_suppression',
  id: 0,
  before,
  after,
})

export const queuedMailStays = 'Mail that is already accepted is still sent.'
