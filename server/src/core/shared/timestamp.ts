import { PosternError } from '../../platform/errors.ts'

const rfc3339 = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/i

/** Parses a caller's timestamp strictly. JavaScript reads February 30 as March 2 and does not support leap seconds. */
export function timestampOf(text: string, field: string): Date {
  const [, day = '', time = ''] = rfc3339.exec(text) ?? []
  const [moment, asWritten] = [new Date(text), new Date(`${day}T${time}Z`)]
  const isReal =
    !Number.isNaN(moment.getTime()) &&
    !Number.isNaN(asWritten.getTime()) &&
    asWritten.toISOString().startsWith(`${day}T${time}`) &&
    moment.getUTCFullYear() <= 9999
  if (isReal) return moment
  throw new PosternError(
    'validation_failed',
    `"${field}" is not a valid RFC 3339 timestamp. Include an offset, such as 2027-01-01T00:00:00Z.`,
  )
}
