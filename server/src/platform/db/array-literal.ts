/**
 * The text of an array in PostgreSQL's syntax, or the array itself if pg has to convert it, for example because it contains
 * dates. pg applies two regular expressions to every element, which takes three times as long.
 */
export function arrayLiteral(values: readonly unknown[]): string | readonly unknown[] {
  let literal = ''
  for (const value of values) {
    const element = elementOf(value)
    if (element === undefined) return values
    literal += literal === '' ? element : `,${element}`
  }
  return `{${literal}}`
}

function elementOf(value: unknown): string | undefined {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'string') return quoted(value)
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

function quoted(text: string): string {
  const escaped = text.includes('\\') ? text.replace(/\\/g, '\\\\') : text
  return `"${escaped.includes('"') ? escaped.replace(/"/g, '\\"') : escaped}"`
}
