import type { DailyLimits } from '../core/caps/caps.ts'

/** More than any test stores. */
export const ampleByteLimits: DailyLimits = {
  max_bytes_per_day: Number.MAX_SAFE_INTEGER,
  max_inbound_bytes_per_day: Number.MAX_SAFE_INTEGER,
  max_forwards_per_day: Number.MAX_SAFE_INTEGER,
}
