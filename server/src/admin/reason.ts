import Type from 'typebox'
import { plainReason } from '../core/shared/text.ts'

/** The audit reason: a field of every administrative mutation, always recorded when it is given. */
export const Reason = Type.String({
  description: 'Why this is done, for the audit: one line of 1 to 500 characters after trimming.',
  examples: ['Asked for by the customer, ticket 4711'],
})

export const reasonOf = (given: string | undefined): string | null =>
  given === undefined ? null : plainReason(given)
