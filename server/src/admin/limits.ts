import { beyond, type Caps, type LimitException } from '../core/control/caps/caps.ts'

/** What a preview says of a limit that is gone past. */
export const limitWarnings = (exception: LimitException | null): string[] =>
  exception
    ? [
        `This goes past the limit ${exception.limit}: number ${exception.count}, ${exception.value} allowed. A reason is needed.`,
      ]
    : []

/** DKIM keys that the project has made today, the new one included; null: none was made. */
export const dkimKeysBeyond = (caps: Caps, keysToday: number | null): LimitException | null =>
  beyond('max_dkim_keys_per_day', caps.max_dkim_keys_per_day, keysToday ?? 0)
