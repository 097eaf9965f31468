import { isDeepStrictEqual } from 'node:util'
import type { Schema } from './api-contract.ts'

/**
 * Whether a client that was written for one schema works with its successor. In a request, the new schema must accept
 * what the old one accepted. In a response, the new schema must promise what the old one promised; new fields and new
 * values of enumerations are allowed there (docs/guide/api-versions.md).
 */
export type Direction = 'request' | 'response'

type Schemas = Record<string, Schema>

interface Pair {
  before: Schema
  after: Schema
  direction: Direction
  /** The place, for a message. */
  at: string
}

/** An unknown keyword would be ignored silently, so it is a fault. */
const keywords = new Set([
  ...['$ref', 'anyOf', 'type', 'enum', 'const', 'format', 'pattern', 'default', 'deprecated', 'items'],
  ...['properties', 'required', 'additionalProperties', 'patternProperties'],
  ...['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'],
  ...['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties', 'multipleOf', 'uniqueItems'],
])
const lowerBounds = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties']
const upperBounds = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties']

/** Resources whose set of fields is fixed (docs/guide/api-versions.md). */
const fixed = new Set(['Project', 'Plan'])

export class SchemaComparison {
  readonly #before: Schemas
  readonly #after: Schemas
  /** A named schema is compared once for each direction, which also ends recursion. */
  readonly #compared = new Set<string>()

  constructor(before: Schemas, after: Schemas) {
    this.#before = before
    this.#after = after
  }

  compare(pair: Pair): string[] {
    const [oldName, newName] = [nameOf(pair.before), nameOf(pair.after)]
    if (oldName === undefined && newName === undefined) return this.#compareAlternatives(pair)
    const key = `${pair.direction} ${oldName ?? pair.at} ${newName ?? pair.at}`
    if (this.#compared.has(key)) return []
    this.#compared.add(key)
    const before = oldName === undefined ? pair.before : (this.#before[oldName] ?? {})
    const after = newName === undefined ? pair.after : (this.#after[newName] ?? {})
    const at = oldName === newName ? `${oldName} (in a ${pair.direction})` : pair.at
    const isFixed = pair.direction === 'response' && oldName !== undefined && fixed.has(oldName)
    return [
      ...(isFixed ? newFields(before, after, at) : []),
      ...this.compare({ before, after, direction: pair.direction, at }),
    ]
  }

  #compareAlternatives({ before, after, direction, at }: Pair): string[] {
    const [oldOnes, newOnes] = [alternatives(before, this.#before), alternatives(after, this.#after)]
    const [given, taken] = direction === 'request' ? [oldOnes, newOnes] : [newOnes, oldOnes]
    return given.flatMap((one) => {
      const candidates = taken.filter((other) => canBe(one, other))
      const results = candidates.map((other) => {
        const [was, is] = direction === 'request' ? [one, other] : [other, one]
        return this.#compareOne({ before: was, after: is, direction, at })
      })
      const [best] = results.sort((a, b) => a.length - b.length)
      if (best) return best
      return [`${at} ${direction === 'request' ? 'no longer accepts' : 'can now be'} ${typeOf(one)}`]
    })
  }

  #compareOne({ before, after, direction, at }: Pair): string[] {
    const unknown = [...Object.keys(before), ...Object.keys(after)].filter((word) => !keywords.has(word))
    return [
      ...[...new Set(unknown)].map((word) => `${at} uses the keyword ${word}, which is not compared`),
      ...enumFaults(before, after, direction, at),
      ...(direction === 'request' ? limitFaults(before, after, at) : []),
      ...['format', 'pattern'].flatMap((word) => {
        const demanded = direction === 'request' ? after[word] : before[word]
        return demanded !== undefined && before[word] !== after[word]
          ? [`${at} has another ${word}: ${before[word]} → ${after[word]}`]
          : []
      }),
      ...(isSchema(before['items']) && isSchema(after['items'])
        ? this.compare({ before: before['items'], after: after['items'], direction, at: `${at}[]` })
        : []),
      ...this.#compareFields({ before, after, direction, at }),
      ...this.#compareOthers({ before, after, direction, at }),
    ]
  }

  #compareFields({ before, after, direction, at }: Pair): string[] {
    const [was, is] = [fieldsOf(before), fieldsOf(after)]
    const [wasRequired, isRequired] = [requiredOf(before), requiredOf(after)]
    const [from, to] = direction === 'request' ? [wasRequired, isRequired] : [isRequired, wasRequired]
    const verb = direction === 'request' ? 'is required now' : 'can be absent now'
    return [
      ...Object.entries(was).flatMap(([name, schema]) => {
        const place = `${at}.${name}`
        const now = is[name]
        return now ? this.compare({ before: schema, after: now, direction, at: place }) : [`${place} is gone`]
      }),
      // A field that is gone has been reported.
      ...to
        .filter((name) => !from.includes(name) && (direction === 'request' || name in is))
        .map((name) => `${at}.${name} ${verb}`),
    ]
  }

  /** Fields without a known name. */
  #compareOthers({ before, after, direction, at }: Pair): string[] {
    const found: string[] = []
    const [was, is] = [before['additionalProperties'] ?? true, after['additionalProperties'] ?? true]
    if (isSchema(was) && isSchema(is))
      found.push(...this.compare({ before: was, after: is, direction, at: `${at}.*` }))
    else if (direction === 'request' ? was !== false && is !== true : isSchema(was) && !isSchema(is))
      found.push(`${at} has another rule for other fields`)
    for (const [pattern, schema] of Object.entries((before['patternProperties'] ?? {}) as Schemas)) {
      const now = (after['patternProperties'] as Schemas | undefined)?.[pattern]
      if (now) found.push(...this.compare({ before: schema, after: now, direction, at: `${at}.*` }))
      else found.push(`${at} has another rule for other fields`)
    }
    return found
  }
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const nameOf = ({ $ref }: Schema): string | undefined =>
  typeof $ref === 'string' ? $ref.replace('#/components/schemas/', '') : undefined

const fieldsOf = ({ properties }: Schema): Schemas => (properties ?? {}) as Schemas
const requiredOf = ({ required }: Schema): string[] => (required ?? []) as string[]

const newFields = (before: Schema, after: Schema, at: string): string[] =>
  Object.keys(fieldsOf(after))
    .filter((name) => !(name in fieldsOf(before)))
    .map((name) => `${at}.${name} is new, but the set of fields is fixed`)

const typeOf = ({ type }: Schema): string => (typeof type === 'string' ? type : 'any value')

const canBe = (one: Schema, other: Schema): boolean =>
  other['type'] === undefined ||
  one['type'] === other['type'] ||
  (one['type'] === 'integer' && other['type'] === 'number')

/** The schemas of which a value fits one. Constants and enumerations of one type are one enumeration. */
function alternatives(schema: Schema, schemas: Schemas): Schema[] {
  const name = nameOf(schema)
  if (name !== undefined) return alternatives(schemas[name] ?? {}, schemas)
  const { anyOf, const: constant, ...rest } = schema
  if (Array.isArray(anyOf))
    return joined(anyOf.flatMap((one: Schema) => alternatives({ ...rest, ...one }, schemas)))
  return [constant === undefined ? rest : { ...rest, enum: [constant] }]
}

function joined(list: Schema[]): Schema[] {
  const result: Schema[] = []
  for (const one of list) {
    const same = result.find(
      (other) => Array.isArray(one['enum']) && Array.isArray(other['enum']) && one['type'] === other['type'],
    )
    if (same) same['enum'] = [...(same['enum'] as unknown[]), ...(one['enum'] as unknown[])]
    else result.push({ ...one })
  }
  return result
}

function enumFaults(before: Schema, after: Schema, direction: Direction, at: string): string[] {
  const [was, is] = [before['enum'] as unknown[] | undefined, after['enum'] as unknown[] | undefined]
  if (was && is)
    return was
      .filter((value) => !is.includes(value))
      .map((value) => `${at} no longer has the value ${JSON.stringify(value)}`)
  if (direction === 'request' && is) return [`${at} accepts only certain values now`]
  if (direction === 'response' && was) return [`${at} can be any value now`]
  return []
}

function limitFaults(before: Schema, after: Schema, at: string): string[] {
  const narrowed = (words: string[], isNarrower: (was: number | undefined, is: number) => boolean) =>
    words.filter((word) => {
      const is = after[word]
      return typeof is === 'number' && isNarrower(before[word] as number | undefined, is)
    })
  const changed = [
    ...narrowed(lowerBounds, (was, is) => was === undefined || is > was),
    ...narrowed(upperBounds, (was, is) => was === undefined || is < was),
    ...['multipleOf', 'uniqueItems'].filter((word) => after[word] && after[word] !== before[word]),
    ...(isDeepStrictEqual(before['default'], after['default']) ? [] : ['default']),
  ]
  const text = (value: unknown): string => (value === undefined ? 'none' : JSON.stringify(value))
  return changed.map((word) => `${at} has another ${word}: ${text(before[word])} → ${text(after[word])}`)
}
