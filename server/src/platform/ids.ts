import { randomBytes } from 'node:crypto'

// Random bytes are drawn by the page: one call for each id costs more than everything else about it.
const pageBytes = 4096
let page = Buffer.alloc(0)
let used = 0

const dayMs = 24 * 3600_000

/**
 * The days, by UTC, on which some ids were made, as the first and the last id that they can have. Tables of mail are cut
 * by day: given as limits beside the ids themselves, these tell PostgreSQL before it plans which partitions it need not
 * think of. With a hundred, that is most of its work.
 *
 * Only around look-ups that it cannot turn round (`lateral (… limit 1)`): it takes limits for a promise of few rows, and
 * may rather read all of these for each id. Narrower ones would promise even fewer.
 */
export function daysOf(ids: readonly string[]): { first: string; last: string } {
  const days = ids.map((id) => Math.floor(madeAt(id).getTime() / dayMs))
  const at = (ms: number, rest: string) => dashed(ms.toString(16).padStart(12, '0') + rest.repeat(20))
  return { first: at(Math.min(...days) * dayMs, '0'), last: at((Math.max(...days) + 1) * dayMs - 1, 'f') }
}

/** When an id of version 7 was made. */
export const madeAt = (id: string): Date => new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))

/** RFC 9562 §5.7: a UUID of version 7 from a moment in milliseconds, which is the database's wherever it is stored. */
export function uuid7(ms: number): string {
  if (used + 10 > page.length) {
    page = randomBytes(pageBytes)
    used = 0
  }
  const random = page.subarray(used, used + 10)
  used += 10
  random[0] = 0x70 | ((random[0] ?? 0) & 0x0f)
  random[2] = 0x80 | ((random[2] ?? 0) & 0x3f)
  return dashed(ms.toString(16).padStart(12, '0') + random.toString('hex'))
}

const dashed = (hex: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
