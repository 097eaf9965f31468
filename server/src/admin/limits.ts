import type { LimitException } from '../core/caps/caps.ts'

/** What a preview says of a limit that is gone past. */
export const limitWarnings = (exception: LimitException | null): string[] =>
  exception
    ? [
        `This goes past the limit ${exception.limit}: number ${exception.count}, ${exception.value} allowed. A reason is needed.`,
      ]
    : []
