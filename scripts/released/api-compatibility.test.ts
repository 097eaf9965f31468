import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { apiFaults } from './api-compatibility.ts'
import { type ApiContract, apiContract } from './api-contract.ts'
import { migrationFaults } from './records.ts'

const file = new URL('../../openapi/postern.v1.json', import.meta.url)
const released = apiContract(JSON.parse(await readFile(file, 'utf8')))

/** A change of one member of the contract. */
interface Planted {
  what: string
  at: string[]
  /** If absent, the member is removed. */
  becomes?(value: never): unknown
}

const send = ['paths', '/v1/messages', 'post']
const body = [...send, 'requestBody', 'content', 'application/json', 'schema']
const list = ['paths', '/v1/admin/projects', 'get']
const edit = ['paths', '/v1/admin/projects/{project_id}', 'patch']
const schemas = ['components', 'schemas']
const message = [...schemas, 'Message', 'properties']
const accepted = ['webhooks', 'message.accepted', 'post']

const without =
  (one: unknown) =>
  (values: unknown[]): unknown[] =>
    values.filter((value) => value !== one)
const withMore =
  (...more: unknown[]) =>
  (values: unknown[] = []): unknown[] => [...values, ...more]

function plant({ at, becomes }: Planted): ApiContract {
  const copy = structuredClone(released)
  let place = copy as unknown as Record<string, unknown>
  for (const member of at.slice(0, -1)) {
    place = place[member] as Record<string, unknown>
    assert.ok(place, `${at.join(' ')} has no ${member}`)
  }
  const last = at.at(-1) ?? ''
  const value = place[last]
  if (becomes) place[last] = becomes(value as never)
  else {
    assert.ok(value !== undefined, `${at.join(' ')} does not exist`)
    delete place[last]
  }
  return copy
}

const breaking: [Planted, expected: RegExp][] = [
  [{ what: 'removes an operation', at: send }, /messages\.send-by-key \(post \/v1\/messages\) is gone/],
  [{ what: 'removes a path', at: ['paths', '/v1/messages'] }, /messages\.send-by-key .* is gone/],
  [
    { what: 'renames an operation', at: [...send, 'operationId'], becomes: () => 'other' },
    /another operation id: other/,
  ],
  [
    { what: 'refuses API keys', at: [...send, 'security'], becomes: () => [{ accessToken: [] }] },
    /no longer allows \{"apiKey":\[\]\}/,
  ],
  [
    {
      what: 'requires a caller',
      at: ['paths', '/v1/installation', 'get', 'security'],
      becomes: () => [{ session: [] }],
    },
    /no longer allows \{"caller":"anyone"\}/,
  ],
  [
    {
      what: 'needs another scope',
      at: [...send, 'x-scopes'],
      becomes: withMore('domains:read'),
    },
    /needs the scope domains:read now/,
  ],
  [
    { what: 'takes a right away', at: [...edit, 'x-rights'], becomes: without('support') },
    /no longer allows support/,
  ],
  [
    {
      what: 'takes a field of a right away',
      at: [...edit, 'x-rights-fields', 'billing'],
      becomes: without('plan_id'),
    },
    /no longer allows billing to change plan_id/,
  ],
  [
    { what: 'removes a security scheme', at: ['components', 'securitySchemes', 'apiKey'] },
    /security scheme apiKey/,
  ],
  [
    {
      what: 'removes a parameter',
      at: [...list, 'parameters'],
      becomes: (all: unknown[]) => all.slice(0, -1),
    },
    /the parameter \S+ is gone/,
  ],
  [
    {
      what: 'adds a required parameter',
      at: [...list, 'parameters'],
      becomes: withMore({ name: 'colour', in: 'query', required: true, schema: { type: 'string' } }),
    },
    /the parameter colour is required now/,
  ],
  [
    { what: 'makes a parameter required', at: [...send, 'parameters', '0', 'required'], becomes: () => true },
    /the parameter Idempotency-Key is required now/,
  ],
  [
    {
      what: 'narrows a parameter',
      at: [...send, 'parameters', '0', 'schema', 'maxLength'],
      becomes: () => 100,
    },
    /Idempotency-Key has another maxLength: 255 → 100/,
  ],
  [{ what: 'removes a body', at: [...send, 'requestBody'] }, /the body is gone/],
  [
    { what: 'removes a field of a request', at: [...body, 'properties', 'reply_to'] },
    /the body\.reply_to is gone/,
  ],
  [
    { what: 'requires a field', at: [...body, 'required'], becomes: withMore('text') },
    /the body\.text is required now/,
  ],
  [
    { what: 'adds a required field', at: [...body, 'required'], becomes: withMore('colour') },
    /the body\.colour is required now/,
  ],
  [
    {
      what: 'narrows a type',
      at: [...body, 'properties', 'text'],
      becomes: () => ({ type: 'string' }),
    },
    /the body\.text no longer accepts null/,
  ],
  [
    { what: 'narrows a list', at: [...body, 'properties', 'to', 'maxItems'], becomes: () => 10 },
    /the body\.to has another maxItems/,
  ],
  [
    { what: 'adds a bound', at: [...body, 'properties', 'subject', 'minLength'], becomes: () => 1 },
    /the body\.subject has another minLength: none → 1/,
  ],
  [
    { what: 'adds a pattern', at: [...body, 'properties', 'subject', 'pattern'], becomes: () => '^a' },
    /the body\.subject has another pattern/,
  ],
  [
    {
      what: 'narrows the values of a map',
      at: [...body, 'properties', 'metadata', 'additionalProperties', 'maxLength'],
      becomes: () => 5,
    },
    /the body\.metadata\.\* has another maxLength/,
  ],
  [
    { what: 'changes a default', at: [...body, 'properties', 'subject', 'default'], becomes: () => 'Hello' },
    /the body\.subject has another default/,
  ],
  [
    {
      what: 'restricts a text to values',
      at: [...body, 'properties', 'from', 'enum'],
      becomes: () => ['a@example.com'],
    },
    /the body\.from accepts only certain values now/,
  ],
  [{ what: 'removes a success status', at: [...send, 'responses', '202'] }, /the response 202 is gone/],
  [
    { what: 'removes a header', at: [...send, 'responses', '429', 'headers', 'Retry-After'] },
    /header Retry-After is gone/,
  ],
  [
    { what: 'removes a field of a response', at: [...message, 'subject'] },
    /Message \(in a response\)\.subject is gone/,
  ],
  [
    { what: 'omits a field', at: [...schemas, 'Message', 'required'], becomes: without('subject') },
    /\.subject can be absent now/,
  ],
  [
    {
      what: 'returns null',
      at: [...message, 'id'],
      becomes: (schema: unknown) => ({ anyOf: [schema, { type: 'null' }] }),
    },
    /Message \(in a response\)\.id can now be null/,
  ],
  [
    { what: 'changes the type of a field', at: [...message, 'id', 'type'], becomes: () => 'integer' },
    /Message \(in a response\)\.id can now be integer/,
  ],
  [
    {
      what: 'changes the format of a field',
      at: [...message, 'created_at', 'format'],
      becomes: () => 'date',
    },
    /created_at has another format: date-time → date/,
  ],
  [
    {
      what: 'adds a field to a fixed resource',
      at: [...schemas, 'Plan', 'properties', 'colour'],
      becomes: () => ({}),
    },
    /Plan \(in a response\)\.colour is new/,
  ],
  [{ what: 'removes a preview', at: [...edit, 'x-dry-run-response'] }, /the preview is gone/],
  [
    { what: 'removes an event', at: ['webhooks', 'message.accepted'] },
    /events\.message\.accepted .* is gone/,
  ],
  [
    {
      what: 'removes a header of events',
      at: [...accepted, 'parameters'],
      becomes: (all: unknown[]) => all.slice(1),
    },
    /the header webhook-id is gone/,
  ],
  [
    {
      what: 'removes a field of an event',
      at: [...schemas, 'MessageAcceptedEvent', 'properties', 'data', 'properties', 'tags'],
    },
    /\.data\.tags is gone/,
  ],
  [
    {
      what: 'uses a keyword that is not compared',
      at: [...body, 'properties', 'subject', 'allOf'],
      becomes: () => [],
    },
    /uses the keyword allOf, which is not compared/,
  ],
]

const allowed: Planted[] = [
  {
    what: 'adds an operation',
    at: ['paths', '/v1/colours'],
    becomes: () => ({ get: released.paths['/v1/messages']?.['post'] }),
  },
  {
    what: 'adds an optional field to a request',
    at: [...body, 'properties', 'colour'],
    becomes: () => ({ type: 'string' }),
  },
  {
    what: 'adds an optional parameter',
    at: [...send, 'parameters'],
    becomes: withMore({ name: 'colour', in: 'query', schema: { type: 'string' } }),
  },
  { what: 'accepts more', at: [...body, 'properties', 'to', 'maxItems'], becomes: () => 5000 },
  {
    what: 'accepts another type',
    at: [...body, 'properties', 'subject'],
    becomes: (schema: unknown) => ({ anyOf: [schema, { type: 'null' }] }),
  },
  { what: 'no longer requires a field', at: [...body, 'required'], becomes: without('subject') },
  { what: 'adds a field to a response', at: [...message, 'colour'], becomes: () => ({ type: 'string' }) },
  {
    what: 'adds an event',
    at: ['webhooks', 'message.opened'],
    becomes: () => released.webhooks['message.accepted'],
  },
  { what: 'adds an error', at: [...send, 'responses', '402'], becomes: () => ({}) },
  { what: 'allows more administrators', at: [...edit, 'x-rights'], becomes: withMore('auditor') },
]

describe('a change of the API is rejected if it', () => {
  for (const [planted, expected] of breaking)
    test(planted.what, () => {
      assert.match(apiFaults(released, plant(planted)).join('\n'), expected)
    })

  test('removes any value of an enumeration', () => {
    const places = enumerations(released)
    assert.ok(places.length > 100)
    for (const at of places) {
      const copy = plant({ what: '', at, becomes: (values: unknown[]) => values.slice(1) })
      assert.match(apiFaults(released, copy).join('\n'), /no longer has the value/, at.join(' '))
    }
  })
})

describe('a change of the API is accepted if it', () => {
  test('is none', () => {
    assert.deepEqual(apiFaults(released, structuredClone(released)), [])
  })
  for (const planted of allowed)
    test(planted.what, () => {
      assert.deepEqual(apiFaults(released, plant(planted)), [])
    })

  test('adds a value to an enumeration of responses', () => {
    const at = enumerations({ Message: released.components.schemas['Message'] })[0] ?? []
    const planted = { what: '', at: [...schemas, ...at], becomes: withMore('opened') }
    assert.deepEqual(apiFaults(released, plant(planted)), [])
  })
})

/** The path of every enumeration with at least two values. */
function enumerations(value: unknown, at: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    key === 'enum' && Array.isArray(inner) && inner.length > 1
      ? [[...at, key]]
      : enumerations(inner, [...at, key]),
  )
}

test('the migrations of a release can be neither changed nor removed, and none can be inserted', () => {
  const migrations = new Map([
    ['000001_a.sql', 'aa'],
    ['000003_b.sql', 'bb'],
  ])
  const faultsOf = (...now: [string, string][]) =>
    migrationFaults({ version: '0.1.0', migrations }, new Map(now)).join('\n')
  assert.equal(faultsOf(['000001_a.sql', 'aa'], ['000003_b.sql', 'bb'], ['000004_c.sql', 'cc']), '')
  assert.match(
    faultsOf(['000001_a.sql', 'ab'], ['000003_b.sql', 'bb']),
    /000001_a\.sql has changed since 0\.1\.0/,
  )
  assert.match(faultsOf(['000003_b.sql', 'bb']), /000001_a\.sql is gone/)
  assert.match(
    faultsOf(['000001_a.sql', 'aa'], ['000002_c.sql', 'cc'], ['000003_b.sql', 'bb']),
    /000002_c\.sql sorts before 000003_b\.sql/,
  )
})
