import { PosternError } from '../../platform/errors.ts'

/** One line of user-supplied text: trimmed, with at least one visible character, and of limited length. */
export function oneLine(text: string, field: string, maxCharacters: number): string {
  const line = visibleText(text, field, maxCharacters)
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(line))
    throw refused(field, 'contains control characters such as line breaks. Remove them.')
  return line
}

/** The same with several lines. Line breaks are stored as line feeds. */
export function plainText(text: string, field: string, maxCharacters: number): string {
  const lines = visibleText(text.replaceAll('\r\n', '\n'), field, maxCharacters)
  if (/[^\P{Cc}\n\t]/u.test(lines)) throw refused(field, 'contains control characters. Remove them.')
  return lines
}

const refused = (field: string, complaint: string) =>
  new PosternError('validation_failed', `"${field}" ${complaint}`)

function visibleText(text: string, field: string, maxCharacters: number): string {
  const trimmed = text.trim()
  // Requires a letter, digit, punctuation mark or symbol, because characters such as zero-width spaces are
  // invisible.
  if (!/[\p{L}\p{N}\p{P}\p{S}]/u.test(trimmed)) throw refused(field, 'is empty.')
  // Counts code points, as JSON Schema does.
  if ([...trimmed].length > maxCharacters)
    throw refused(field, `is longer than ${maxCharacters} characters. Shorten it.`)
  // Bidirectional controls disguise a text: https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing
  if (/[\u202a-\u202e\u2066-\u2069]/u.test(trimmed))
    throw refused(field, 'contains characters that change the text direction. Remove them.')
  if (!trimmed.isWellFormed()) throw refused(field, 'contains an unpaired surrogate.')
  return trimmed
}

const maxNameCharacters = 100
const maxReasonCharacters = 500

/** The name of a resource. */
export const plainName = (text: string, field: string): string => oneLine(text, field, maxNameCharacters)

/** The reason for an operation. */
export const plainReason = (text: string): string => oneLine(text, 'reason', maxReasonCharacters)
