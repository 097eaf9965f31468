import type { EndpointRow } from '../../core/control/endpoints/endpoints.ts'

/** Warns that the last delivery failed. `trial`: when the next attempt is made. */
export const queueWarnings = (
  { consecutive_failures }: EndpointRow,
  trial: 'immediately' | 'when it is due',
): string[] =>
  consecutive_failures > 0
    ? [
        `The last delivery to the endpoint failed (consecutive failures: ${consecutive_failures}). The next attempt is made ${trial}.`,
      ]
    : []
