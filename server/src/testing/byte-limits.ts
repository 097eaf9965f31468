import type { ByteLimits } from '../core/caps/caps.ts'

/** More than any test stores. */
export const ampleByteLimits: ByteLimits = {
  max_bytes_per_day: Number.MAX_SAFE_INTEGER,
  max_inbound_bytes_per_day: Number.MAX_SAFE_INTEGER,
}
