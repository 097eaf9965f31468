import { beyond, type Caps, type LimitException } from '../core/control/caps/caps.ts'

/** The warning in the preview of a change that exceeds a limit. */
export const limitWarnings = (exception: LimitException | null): string[] =>
  exception
    ? [
        `This exceeds the limit ${exception.limit}: ${exception.count} of ${exception.value}. A reason is required.`,
      ]
    : []

/** The number of DKIM keys that the project created today, including the new one, or null if none was created. */
export const dkimKeysBeyond = (caps: Caps, keysToday: number | null): LimitException | null =>
  beyond('max_dkim_keys_per_day', caps.max_dkim_keys_per_day, keysToday ?? 0)
