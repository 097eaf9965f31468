import type { EndpointRow } from '../../core/control/endpoints/endpoints.ts'

/** That a delivery may fail: by what was seen last it will. `trial`: when that is found out. */
export const queueWarnings = (
  { consecutive_failures }: EndpointRow,
  trial: 'at once' | 'when it is due',
): string[] =>
  consecutive_failures > 0
    ? [
        `It did not take what it was last sent (failures in a row: ${consecutive_failures}), and is tried ${trial}.`,
      ]
    : []
