import { PosternError } from '../../platform/errors.ts'

/** One line of user-supplied text: trimmed, with at least one visible character, and of limited length. */
export function oneLine(text: string, field: string, maxCharacters: number): string {
  const line = text.trim()
  const refuse = (complaint: string) => new PosternError('validation_failed', `"${field}" ${complaint}`)
  // Requires a letter, digit, punctuation mark or symbol, because characters such as zero-width spaces are
  // invisible.
  if (!/[\p{L}\p{N}\p{P}\p{S}]/u.test(line)) throw refuse('is empty.')
  // Counts code points, as JSON Schema does.
  if ([...line].length > maxCharacters)
    throw refuse(`is longer than ${maxCharacters} characters. Shorten it.`)
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(line))
    throw refuse('contains control characters such as line breaks. Remove them.')
  // Bidirectional controls disguise a text: https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing
  if (/[\u202a-\u202e\u2066-\u2069]/u.test(line))
    throw refuse('contains characters that change the text direction. Remove them.')
  if (!line.isWellFormed()) throw refuse('contains an unpaired surrogate.')
  return line
}

const maxNameCharacters = 100
const maxReasonCharacters = 500

/** The name of a resource. */
export const plainName = (text: string, field: string): string => oneLine(text, field, maxNameCharacters)

/** The reason for an operation. */
export const plainReason = (text: string): string => oneLine(text, 'reason', maxReasonCharacters)
