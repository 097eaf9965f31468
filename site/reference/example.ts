import { type Document, resolve, type Schema, withoutNull } from './document.ts'

/**
 * A value that the schema allows, from its examples, or chosen by the name of the field. A schema with an example of
 * its own is never guessed.
 */
export function exampleOf(document: Document, given: Schema, name = ''): unknown {
  const { schema } = withoutNull(resolve(document, given).schema)
  if (schema.$ref !== undefined) return exampleOf(document, schema, name)
  if (schema.examples?.length) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return chooseFrom(schema.enum, name)
  const [first] = schema.anyOf ?? []
  if (first) return exampleOf(document, first, name)
  switch (schema.type) {
    case 'object':
      return objectOf(document, schema, name)
    case 'array':
      return schema.items ? [exampleOf(document, schema.items, singular(name))] : []
    case 'boolean':
      return !/^(is_locked|is_test|erased|already|held)/.test(name)
    case 'integer':
    case 'number':
      return numberOf(schema, name)
    case 'string':
      return stringOf(schema, name)
    default:
      return null
  }
}

function objectOf(document: Document, schema: Schema, name: string): unknown {
  const { properties = {}, additionalProperties: rest } = schema
  const own = Object.entries(properties).map(([key, inner]) => [key, exampleOf(document, inner, key)])
  if (own.length > 0 || typeof rest !== 'object') return Object.fromEntries(own)
  return { [keyOf(name)]: exampleOf(document, rest, name) }
}

const keyOf = (name: string): string => (name === 'metadata' ? 'order' : 'key')

const singular = (name: string): string => name.replace(/ies$/, 'y').replace(/s$/, '')

/** The usual case, and not an alarming one, if the schema allows it. */
function chooseFrom(values: unknown[], name: string): unknown {
  const usual = ['delivered', 'developer', 'active', 'verified', 'healthy', name]
  return usual.find((value) => values.includes(value)) ?? values[0]
}

const numbers: Record<string, number> = {
  project_id: 7,
  chain: 7,
  user_id: 3,
  actor_id: 3,
  plan_id: 2,
  price: 49,
  version: 4,
  status: 200,
  latency_ms: 84,
  size_bytes: 4096,
  reputation_score: 92,
  volume: 12_480,
  sent: 12_480,
  delivered: 12_310,
  max_mails_per_day: 10_000,
  max_mails_per_month: 250_000,
  window_minutes: 60,
  pace_per_hour: 500,
}

function numberOf({ minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: Schema, name: string): number {
  const chosen = numbers[name] ?? (/(^|_)id$/.test(name) ? 12 : /rate/.test(name) ? 0.8 : 1)
  return Math.min(Math.max(chosen, minimum), maximum)
}

const formats: Record<string, string> = {
  'date-time': '2026-11-14T09:30:00.000Z',
  date: '2026-11-14',
  uuid: '01939f0e-7b1a-7c3e-9d2f-0123456789ab',
}

const strings: Record<string, string> = {
  email: 'ada@example.com',
  address: 'grace@example.com',
  recipient: 'grace@example.com',
  from: 'Acme <hello@acme.example>',
  forward_to: 'ada@example.com',
  to: 'grace@example.com',
  subject: 'Your order',
  text: 'It is on its way.',
  name: 'Acme',
  host: 'mail.acme.example',
  url: 'https://hooks.acme.example/postern',
  diagnostic: '250 2.0.0 Ok: queued',
  reason: 'Requested by the customer, ticket 4711',
  note: 'A customer asked us to wait, ticket 4711.',
  ip: '192.0.2.17',
  ip_address: '192.0.2.17',
  user_agent: 'Mozilla/5.0',
  request_id: '01939f0e-7b1a-7c3e-9d2f-0123456789ab',
  last_request_id: '01939f0e-7b1a-7c3e-9d2f-0123456789ab',
  next_cursor: 'WzEyXQ',
  token: 'eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIzIn0.c2lnbmF0dXJl',
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw5ZkZkkYl2Ew=',
  prev_hash: '9f2c6d1b0e4a8f37',
  hash: '4be1a70c93d2f568',
  tag: 'orders',
  metadata: '4711',
  file: '{"kind":"evidence"}',
}

function stringOf(
  { format, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Schema,
  name: string,
): string {
  const chosen =
    formats[format ?? ''] ?? strings[name] ?? strings[name.replace(/^.*_(?=[a-z]+$)/, '')] ?? 'text'
  const fits = chosen.length <= maxLength && (pattern === undefined || new RegExp(pattern).test(chosen))
  const allowed = fits
    ? chosen
    : [formats['uuid'] ?? '', '123456', '1', 'project:7'].find(
        (one) => new RegExp(pattern ?? '').test(one) && one.length <= maxLength,
      )
  return (allowed ?? '').padEnd(minLength, 'x')
}
