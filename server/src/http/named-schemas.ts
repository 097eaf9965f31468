import { isDeepStrictEqual } from 'node:util'

/**
 * A schema with a `title` is described once, under `components.schemas`, and referred to wherever it occurs.
 *
 * The schemas arrive here in full, because Fastify validates requests against them.
 */
export type Schema = { [keyword: string]: unknown }

// JSON Schema 2020-12: the keywords that contain other schemas, and how they contain them. Everything else is
// data, such as an example that happens to have a member named `title`.
const single = ['items', 'additionalProperties', 'contains', 'propertyNames', 'not', 'if', 'then', 'else']
const listed = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const mapped = ['properties', 'patternProperties', '$defs']

// @fastify/swagger moves these from a schema to its parameter or body, if there is one.
const movable = ['description', 'examples']

export class NamedSchemas {
  readonly #byTitle = new Map<string, Schema>()

  /** The schema with every titled schema replaced by a reference. */
  refer(schema: Schema): Schema {
    const inner = eachInner(schema, (child) => this.refer(child))
    const { title } = inner
    if (typeof title !== 'string') return inner
    const known = this.#byTitle.get(title)
    if (known && !isSame(known, inner)) throw new Error(`Two different schemas have the title "${title}".`)
    this.#byTitle.set(title, { ...known, ...inner })
    return { $ref: `#/components/schemas/${title}` }
  }

  /** By title, in alphabetical order. */
  all(): Record<string, Schema> {
    return Object.fromEntries([...this.#byTitle].sort(([one], [other]) => (one < other ? -1 : 1)))
  }
}

function eachInner(schema: Schema, change: (inner: Schema) => Schema): Schema {
  const changeIfSchema = (value: unknown): unknown => (isSchema(value) ? change(value) : value)
  const entries = Object.entries(schema).map(([keyword, value]): [string, unknown] => {
    if (single.includes(keyword)) return [keyword, changeIfSchema(value)]
    if (listed.includes(keyword) && Array.isArray(value)) return [keyword, value.map(changeIfSchema)]
    if (mapped.includes(keyword) && isSchema(value)) {
      const changed = Object.entries(value).map(([name, inner]) => [name, changeIfSchema(inner)])
      return [keyword, Object.fromEntries(changed)]
    }
    return [keyword, value]
  })
  return Object.fromEntries(entries)
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function isSame(one: Schema, other: Schema): boolean {
  const moved = movable.filter((keyword) => !(keyword in one) || !(keyword in other))
  const rest = (schema: Schema): Schema =>
    Object.fromEntries(Object.entries(schema).filter(([keyword]) => !moved.includes(keyword)))
  return isDeepStrictEqual(rest(one), rest(other))
}
