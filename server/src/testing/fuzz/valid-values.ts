import type { Chance } from '../harness/random.ts'
import type { Schema } from './document.ts'
import { shuffled } from './draw.ts'
import { hostileTexts, plainText } from './texts.ts'

/**
 * A random value that the schema allows, including the shortest and longest strings, the bounds of a range, and
 * hostile strings. `idFor` returns the id to use for a field.
 */
export type IdFor = (field: string) => number | undefined

export function validValue(chance: Chance, schema: Schema, field: string, idFor: IdFor): unknown {
  const alternatives = schema['anyOf'] as Schema[] | undefined
  if (alternatives) return validValue(chance, chance.pick(alternatives), field, idFor)
  const values = schema['enum'] as unknown[] | undefined
  if (values) return chance.pick(values)
  if ('const' in schema) return schema['const']
  switch (schema['type']) {
    case 'null':
      return null
    case 'boolean':
      return chance.happens(0.5)
    case 'integer':
      return idFor(field) ?? integer(chance, schema)
    case 'number':
      return integer(chance, schema) / chance.pick([1, 1, 10, 100, 1000])
    case 'string':
      return text(chance, schema, field)
    case 'array':
      return list(chance, schema, field, idFor)
    default:
      return object(chance, schema, idFor)
  }
}

/** Includes optional properties with a probability of one half. */
export function object(chance: Chance, schema: Schema, idFor: IdFor): Record<string, unknown> {
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>)
  const required = (schema['required'] ?? []) as string[]
  return Object.fromEntries(
    properties
      .filter(([name]) => required.includes(name) || chance.happens(0.5))
      .map(([name, inner]) => [name, validValue(chance, inner, name, idFor)]),
  )
}

function integer(chance: Chance, schema: Schema): number {
  const { minimum = -1000, maximum = 1000 } = schema as { minimum?: number; maximum?: number }
  return chance.pick([
    minimum,
    maximum,
    minimum + chance.below(Math.min(100, maximum - minimum + 1)),
    Math.min(maximum, 7),
  ])
}

function list(chance: Chance, schema: Schema, field: string, idFor: IdFor): unknown[] {
  const {
    items = {},
    maxItems = 5,
    uniqueItems,
  } = schema as { items?: Schema; maxItems?: number; uniqueItems?: boolean }
  const values = items['enum'] as unknown[] | undefined
  const length = chance.below(Math.min(maxItems, 20) + 1)
  if (uniqueItems && values) return shuffled(chance, values).slice(0, length)
  return Array.from({ length }, () => validValue(chance, items, field, idFor))
}

/** Plausible values by field name, for schemas that only require a string. */
const likely: Record<string, readonly string[]> = {
  email: ['grace@example.com', 'Ada.Lovelace+x@Example.ORG', 'a@b', ''],
  url: ['https://hooks.example.com/x', 'https://[::1]/', 'http://example.com', 'https://example.com/?q=1#f'],
  name: ['example.com', 'Example', 'xn--mnchen-3ya.example'],
  address: ['sales@example.com', '*@example.com'],
  forward_to: ['elsewhere@example.net', 'x'],
}

function text(chance: Chance, schema: Schema, field: string): string {
  const {
    minLength = 0,
    maxLength = 300,
    format,
    pattern,
  } = schema as {
    minLength?: number
    maxLength?: number
    format?: string
    pattern?: string
  }
  if (format === 'date-time') return new Date(chance.below(2 ** 31) * 1000).toISOString()
  if (pattern !== undefined) return chance.pick(['endpoint', 'endpoint:1', 'project:7', 'x'])
  const drawn = chance.pick<() => string>([
    () => plainText(chance),
    () => plainText(chance),
    () => chance.pick(likely[field] ?? hostileTexts),
    () => chance.pick(likely[field] ?? hostileTexts),
    () => chance.pick(hostileTexts),
    () => 'x'.repeat(maxLength),
    () => '𝒳'.repeat(maxLength),
    () => 'ß'.repeat(Math.max(1, minLength)),
    () => String.fromCodePoint(...Array.from({ length: 20 }, () => 1 + chance.below(0xd7fe))),
  ])()
  return [...drawn].slice(0, maxLength).join('').padEnd(minLength, 'x')
}
