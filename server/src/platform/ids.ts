import { randomBytes } from 'node:crypto'

// Random bytes are buffered, because calling randomBytes would dominate the cost of each id.
const pageBytes = 4096
let page = Buffer.alloc(0)
let used = 0

const dayMs = 24 * 3600_000
/** The latest time that a UUIDv7 can contain. Its day is not complete. */
const latestMs = 2 ** 48 - 1

/**
 * The smallest and the largest possible id for the UTC days on which the specified ids were created. The mail tables are
 * partitioned by day. With these bounds in addition to the ids, PostgreSQL prunes partitions before planning; with a
 * hundred partitions, planning would otherwise be most of the work.
 *
 * Only for lookups whose join order is fixed (`lateral (… limit 1)`). Elsewhere the planner underestimates the rows within
 * the bounds and may scan all of them for each id. Tighter bounds would make the estimate worse.
 */
export function daysOf(ids: readonly string[]): { first: string; last: string } {
  const days = ids.map((id) => Math.floor(madeAt(id).getTime() / dayMs))
  const at = (ms: number, rest: string) => dashed(ms.toString(16).padStart(12, '0') + rest.repeat(20))
  const end = Math.min((Math.max(...days) + 1) * dayMs - 1, latestMs)
  return { first: at(Math.min(...days) * dayMs, '0'), last: at(end, 'f') }
}

/** The creation time of a UUIDv7. */
export const madeAt = (id: string): Date => new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))

/** RFC 9562 §5.7: a UUIDv7 from a time in milliseconds. Stored ids use the database's clock. */
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
