import { randomBytes } from 'node:crypto'

// Random bytes are drawn by the page: one call for each id costs more than everything else about it.
const pageBytes = 4096
let page = Buffer.alloc(0)
let used = 0

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
  const hex = ms.toString(16).padStart(12, '0') + random.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
