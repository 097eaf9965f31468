const maxLength = 2000

// An enhanced status code (RFC 3463) consists of class, subject and detail, such as 5.1.1. The status
// follows the reply code and can be repeated on each line (RFC 2034 §4). Some servers write the status in
// brackets or after a #. The class is 2, 4 or 5 (RFC 3463 §2).
const afterCode = /(?:^|[\s;:])([245]\d\d)[ -]+[(<[]?#?([245]\.\d{1,3}\.\d{1,3})(?![\d.])/
const marked = /(?:^|[\s(<[])#([245]\.\d{1,3}\.\d{1,3})(?![\d.])/
const alone = /^\s*([245]\.\d{1,3}\.\d{1,3})(?![\d.])/

/**
 * Extracted from a reply or a diagnostic text. Null if there is no status or it contradicts the reply code.
 */
export function enhancedStatusOf(text: string): string | null {
  const start = text.slice(0, maxLength)
  const [, code, status] = afterCode.exec(start) ?? []
  if (code !== undefined && status !== undefined) return code[0] === status[0] ? status : null
  return (marked.exec(start) ?? alone.exec(start))?.[1] ?? null
}

/** The code at the beginning of a reply (RFC 5321 §4.2), or the first one in a diagnostic text. */
export function replyCodeOf(text: string): number | null {
  const [, code] = /(?:^|[\s;:])([2-5]\d\d)(?=[\s-]|$)/.exec(text.slice(0, maxLength)) ?? []
  return code === undefined ? null : Number(code)
}

/** A reply for storage and display: one line, without control characters, limited in length. */
export function replyText(text: string): string {
  return text
    .slice(0, maxLength)
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, 1000)
}
