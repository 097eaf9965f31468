import { PosternError } from '../../platform/errors.ts'

/** One line of text that a person gives: trimmed, with something to see in it, and no longer than it may be. */
export function oneLine(text: string, field: string, maxCharacters: number): string {
  const line = text.trim()
  const refuse = (complaint: string) => new PosternError('validation_failed', `"${field}" ${complaint}`)
  // A letter, a digit, a sign: spaces of no width are nothing to see.
  if (!/[\p{L}\p{N}\p{P}\p{S}]/u.test(line)) throw refuse('is empty.')
  // Characters as JSON Schema counts them, which are code points.
  if ([...line].length > maxCharacters)
    throw refuse(`is longer than ${maxCharacters} characters. Shorten it.`)
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(line))
    throw refuse('contains control characters such as line breaks. Remove them.')
  // They make a text read differently from what it says: https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing
  if (/[\u202a-\u202e\u2066-\u2069]/u.test(line))
    throw refuse('contains characters that change the text direction. Remove them.')
  if (!line.isWellFormed()) throw refuse('contains an unpaired surrogate.')
  return line
}

const maxNameCharacters = 100
const maxReasonCharacters = 500

/** A name that people give to a thing. */
export const plainName = (text: string, field: string): string => oneLine(text, field, maxNameCharacters)

/** Why something is done. */
export const plainReason = (text: string): string => oneLine(text, 'reason', maxReasonCharacters)
