/** RFC 3463: class, subject and detail, such as 5.1.1. */
const maxLength = 2000

// Behind the three digits of a reply, each line of which may repeat them (RFC 2034 §4), or in brackets or behind a # as
// some write it. The class of a delivery's end is 2, 4 or 5 (RFC 3463 §2).
const behindCode = /(?:^|[\s;:])([245]\d\d)[ -]+[(<[]?#?([245]\.\d{1,3}\.\d{1,3})(?![\d.])/
const marked = /(?:^|[\s(<[])#([245]\.\d{1,3}\.\d{1,3})(?![\d.])/
const alone = /^\s*([245]\.\d{1,3}\.\d{1,3})(?![\d.])/

/** Of a reply or a diagnostic text. Null when there is none, or one that contradicts the reply's own digits. */
export function enhancedStatusOf(text: string): string | null {
  const start = text.slice(0, maxLength)
  const [, code, status] = behindCode.exec(start) ?? []
  if (code !== undefined && status !== undefined) return code[0] === status[0] ? status : null
  return (marked.exec(start) ?? alone.exec(start))?.[1] ?? null
}

/** The three digits that a reply begins with (RFC 5321 §4.2), or that stand first in a diagnostic text. */
export function replyCodeOf(text: string): number | null {
  const [, code] = /(?:^|[\s;:])([2-5]\d\d)(?=[\s-]|$)/.exec(text.slice(0, maxLength)) ?? []
  return code === undefined ? null : Number(code)
}

/** A reply as it may be kept and shown: one line, without control characters, and not endless. */
export function replyText(text: string): string {
  return text
    .slice(0, maxLength)
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, 1000)
}
