/** Field paths in error messages: `name`, `plan.price`, `to[0]`. */

// Keeps error messages short.
const maxNameLength = 100

export function fieldPath(segments: readonly (string | number)[]): string {
  let path = ''
  for (const segment of segments) {
    const isIndex = typeof segment === 'number' || (path !== '' && /^(0|[1-9]\d*)$/.test(segment))
    if (isIndex) path += `[${segment}]`
    else path += path === '' ? segment : `.${segment}`
    if (path.length > maxNameLength) break
  }
  return path.slice(0, maxNameLength)
}

/** Splits a JSON pointer (RFC 6901 §4). */
export const segmentsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
