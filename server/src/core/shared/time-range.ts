import Type from 'typebox'
import { PosternError } from '../../platform/errors.ts'

/** Query parameters that limit a list to a period. */
const Time = Type.String({ format: 'date-time', examples: ['2026-11-14T00:00:00Z'] })

export const timeRangeQuery = (things: string) => ({
  from: Type.Optional({ ...Time, description: `${things} at or after this time.` }),
  to: Type.Optional({ ...Time, description: `${things} before this time.` }),
})

interface TimeRange {
  from: Date | undefined
  to: Date | undefined
}

export const timeRangeOf = (query: { from?: string | undefined; to?: string | undefined }): TimeRange => ({
  from: timeOf(query.from, 'from'),
  to: timeOf(query.to, 'to'),
})

function timeOf(text: string | undefined, name: string): Date | undefined {
  if (text === undefined) return undefined
  const time = new Date(text)
  // RFC 3339 allows a leap second; JavaScript's Date does not.
  if (Number.isNaN(time.getTime()))
    throw new PosternError('invalid_parameter', `"${name}" is not a valid RFC 3339 timestamp.`)
  return time
}
