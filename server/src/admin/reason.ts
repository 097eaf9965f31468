import Type from 'typebox'
import { PosternError } from '../platform/errors.ts'

/** The audit reason: a field of every administrative mutation, always recorded when it is given. */
const maxLength = 500

export const Reason = Type.String({
  description: `Why this is done, for the audit: 1 to ${maxLength} characters after trimming, without control characters.`,
  examples: ['Asked for by the customer, ticket 4711'],
})

export function reasonOf(given: string | undefined): string | null {
  if (given === undefined) return null
  const reason = given.trim()
  if (reason === '') throw new PosternError('validation_failed', '"reason" is empty. Say why this is done.')
  if ([...reason].length > maxLength) {
    throw new PosternError(
      'validation_failed',
      `"reason" is longer than ${maxLength} characters. Shorten it.`,
    )
  }
  if (/\p{Cc}/u.test(reason)) {
    throw new PosternError(
      'validation_failed',
      '"reason" contains control characters. Keep it to one line of text.',
    )
  }
  return reason
}
