import { type Document, resolve, type Schema, withoutNull } from './document.ts'

// Schemas as nested lists of fields, in HTML.

export const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** Text with code in backticks. */
export const inline = (text: string): string => escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')

/** The fields of an object, or of an array's items. Empty if the schema has none. */
export function fieldsOf(document: Document, given: Schema, seen: readonly string[] = []): string {
  const { schema: found, name } = resolve(document, withoutNull(given).schema)
  if (name !== undefined && seen.includes(name)) return ''
  const schema = withoutNull(found).schema
  const within = name === undefined ? seen : [...seen, name]
  if (schema.type === 'array') return schema.items ? fieldsOf(document, schema.items, within) : ''
  if (schema.anyOf) return schema.anyOf.map((one) => fieldsOf(document, one, within)).join('')
  const { properties = {}, required = [], additionalProperties: rest } = schema
  const fields = Object.entries(properties).map(([key, inner]) =>
    field(document, key, inner, { isRequired: required.includes(key), within }),
  )
  if (fields.length === 0 && typeof rest === 'object') return fieldsOf(document, rest, within)
  return fields.length === 0 ? '' : `<ul class="fields">${fields.join('')}</ul>`
}

interface Where {
  isRequired: boolean
  within: readonly string[]
}

function field(document: Document, key: string, given: Schema, { isRequired, within }: Where): string {
  const description = given.description ?? describedBy(document, given)
  const inner = fieldsOf(document, given, within)
  return [
    `<li><div><code class="name">${escapeHtml(key)}</code> <span class="type">${typeOf(document, given)}</span>`,
    isRequired ? '' : ' <span class="optional">optional</span>',
    '</div>',
    description === undefined ? '' : `<p>${inline(description)}</p>`,
    inner === ''
      ? ''
      : `<details><summary>Fields of <code>${escapeHtml(key)}</code></summary>${inner}</details>`,
    '</li>',
  ].join('')
}

const describedBy = (document: Document, given: Schema): string | undefined =>
  withoutNull(resolve(document, withoutNull(given).schema).schema).schema.description

/** The type with its limits, such as `string, at most 64 characters, or null`. */
export function typeOf(document: Document, given: Schema): string {
  const { schema, isNullable } = withoutNull(given)
  const { schema: resolved } = resolve(document, schema)
  const parts = [kindOf(document, resolved), limitsOf(resolved), isNullable ? 'or null' : '']
  return parts
    .filter((part) => part !== '')
    .join(', ')
    .replace(/, or null$/, ' or null')
}

function kindOf(document: Document, schema: Schema): string {
  if (schema.const !== undefined) return `<code>${escapeHtml(JSON.stringify(schema.const))}</code>`
  if (schema.enum) return schema.enum.map((value) => `<code>${escapeHtml(`${value}`)}</code>`).join(' | ')
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(document, one)).join(' or ')
  if (schema.format === 'date-time') return 'timestamp'
  if (schema.format === 'date') return 'date'
  if (schema.type === 'array') return schema.items ? `array of ${itemsOf(document, schema.items)}` : 'array'
  return schema.type ?? 'any value'
}

/** `strings (at most 64 characters)`, or the values of an enumeration. */
function itemsOf(document: Document, given: Schema): string {
  const { schema } = resolve(document, withoutNull(given).schema)
  const kind = kindOf(document, schema)
  const limits = limitsOf(schema)
  return `${/^[a-z]+$/.test(kind) ? `${kind}s` : kind}${limits === '' ? '' : ` (${limits})`}`
}

const safeInteger = Number.MAX_SAFE_INTEGER

function limitsOf({
  minLength,
  maxLength,
  minimum,
  maximum,
  minItems,
  maxItems,
  enum: values,
}: Schema): string {
  if (values) return ''
  if (maxLength !== undefined) return rangeOf(minLength, maxLength, 'characters')
  if (maxItems !== undefined) return rangeOf(minItems, maxItems, 'items')
  if (maximum !== undefined && maximum < safeInteger) return rangeOf(minimum, maximum, '')
  return minimum === undefined || minimum === 0 ? '' : `at least ${minimum}`
}

function rangeOf(from: number | undefined, to: number, unit: string): string {
  const [low, high] = [from ?? 0, to].map((value) => value.toLocaleString('en'))
  return `${from === undefined || from === 0 ? `at most ${high}` : from === to ? low : `${low} to ${high}`} ${unit}`.trim()
}
