/** An independent implementation of the text rules. */

/** One line: trimmed, visible, without control or bidirectional formatting characters. */
function line(text: string, most: number): string | undefined {
  const trimmed = text.trim()
  const characters = [...trimmed]
  if (characters.length > most) return undefined
  if (!characters.some((one) => /[\p{L}\p{N}\p{P}\p{S}]/u.test(one))) return undefined
  return characters.some((one) => isForbidden(one.codePointAt(0) ?? 0)) ? undefined : trimmed
}

const forbidden: readonly (readonly [number, number])[] = [
  [0x00, 0x1f],
  [0x7f, 0x9f],
  [0x2028, 0x2029],
  [0x202a, 0x202e],
  [0x2066, 0x2069],
]

const isForbidden = (code: number): boolean =>
  forbidden.some(([first, last]) => code >= first && code <= last)

/** Several lines: tabs and line feeds are allowed as well. */
export function noteOf(text: string): string | undefined {
  const trimmed = text.replaceAll('\r\n', '\n').trim()
  const plain = line(trimmed.replaceAll(/[\n\t\u2028\u2029]/g, ' '), 4000)
  return plain === undefined ? undefined : trimmed
}

export const nameOf = (text: string): string | undefined => line(text, 100)
export const reasonOf = (text: string): string | undefined => line(text, 500)

/** An amount of money with at most two decimal places. */
export const isPrice = (price: number): boolean => /^\d+(?:\.\d{1,2})?$/.test(String(price))

/** A valid sign-in address: ASCII, at a host name with a dot. */
export function addressOf(text: string): string | undefined {
  const address = text.toLowerCase()
  const [local = '', host = '', ...more] = address.split('@')
  if (more.length > 0 || address.length > 254) return undefined
  const isLocal = local.split('.').every((atom) => /^[a-z0-9_'+-]+$/.test(atom))
  const labels = host.split('.')
  const isHost =
    labels.length > 1 &&
    labels.every((label) => /^[a-z0-9][a-z0-9-]*$/.test(label)) &&
    /^[a-z]{2,}$/.test(labels.at(-1) ?? '')
  return isLocal && isHost ? address : undefined
}
