import type { Schema } from './document.ts'

/** A value that JSON.stringify cannot produce. */
class Literal {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toJSON(): string {
    return `\u0001${this.text}\u0001`
  }
}

export const literal = (text: string): unknown => new Literal(text)

export const withLiterals = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/"\\u0001(.*?)\\u0001"/g, (_, text: string) => JSON.parse(`"${text}"`))

/** A lone surrogate: JSON can express it, UTF-8 cannot. */
const lone = [literal('"\\ud800"'), literal('"a\\udc00b"')]
const huge = [literal('1e400'), literal('-1e400'), literal('1E+9999')]

/** Values that the schema does not allow, each with one error. */
export function wrongValues(schema: Schema): unknown[] {
  const alternatives = (schema['anyOf'] ?? [schema]) as Schema[]
  const isNullable = alternatives.some(({ type }) => type === 'null')
  const main = alternatives.find(({ type }) => type !== 'null') ?? schema
  const own = byType[String(main['type'])]
  if (!own) throw new Error(`no invalid value for ${JSON.stringify(schema)}`)
  return [...own(main), ...(isNullable ? [] : [null])]
}

const byType: Record<string, (schema: Schema) => unknown[]> = {
  string(schema) {
    const others = [0, 1, true, false, [], ['x'], {}, { $gt: '' }, literal('"\\u0000"'), ...lone]
    const {
      enum: values,
      minLength,
      maxLength,
    } = schema as { enum?: string[]; minLength?: number; maxLength?: number }
    if (values) {
      const [first = ''] = values
      return [...others, '', 'x', first.toUpperCase(), ` ${first}`, `${first}\n`, values.join(), [first]]
    }
    return [
      ...others,
      ...(minLength === 1 ? [''] : []),
      ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1), '𝒳'.repeat(maxLength + 1)]),
    ]
  },
  integer(schema) {
    const { minimum, maximum } = schema as { minimum?: number; maximum?: number }
    return [
      ...['', '1', 'x', true, [], [1], {}, 0.5, 1e-9, literal('9007199254740993'), literal('1e308')],
      ...huge,
      ...(minimum === undefined ? [] : [minimum - 1]),
      ...(maximum === undefined ? [] : [maximum + 1]),
    ]
  },
  number(schema) {
    const { minimum, maximum } = schema as { minimum?: number; maximum?: number }
    return [
      ...['', '1', true, [], {}, ...huge],
      ...(minimum === undefined ? [] : [minimum - 0.01]),
      ...(maximum === undefined ? [] : [maximum + 1]),
    ]
  },
  boolean: () => ['true', 'false', '', 0, 1, [], {}, [true]],
  array(schema) {
    const { items, uniqueItems, maxItems } = schema as {
      items?: Schema
      uniqueItems?: boolean
      maxItems?: number
    }
    const inner = items ? wrongValues(items).filter((value) => value !== null) : []
    const values = (items?.['enum'] ?? []) as string[]
    return [
      ...['', 'x', 0, true, {}, { length: 0 }],
      ...inner.map((value) => [value]),
      ...(uniqueItems && values[0] !== undefined ? [[values[0], values[0]]] : []),
      ...(maxItems === undefined
        ? []
        : [Array.from({ length: maxItems + 1 }, (_, n) => values[n] ?? values[0] ?? n)]),
    ]
  },
  object: () => ['', 'x', 0, true, [], { x: 1 }],
}
