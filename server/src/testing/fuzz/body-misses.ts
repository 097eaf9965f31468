import type { Chance } from '../harness/random.ts'
import type { DocumentedOperation, Schema } from './document.ts'
import { encodePlain, type RequestContent } from './encode.ts'
import type { Request } from './http.ts'
import { literal, withLiterals, wrongValues } from './wrong-values.ts'

/** A request with exactly one error, and the responses that are allowed for it. */
export interface NearMiss {
  about: string
  request: Request
  /** Each entry is `<status> <error code>`. */
  allowed: readonly string[]
  /** Whether the request matches no operation. */
  matchesNoOperation?: true
}

export type Miss = (
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
) => NearMiss | undefined

/** Errors in a body, each with its relative frequency. */
export const bodyMisses: readonly [number, Miss][] = [
  [30, fieldMiss],
  [7, missingMiss],
  [9, extraMiss],
  [14, jsonMiss],
  [4, shapeMiss],
  [9, mediaMiss],
  [2, sizeMiss],
]

const schemaOfBody = ({
  body,
}: DocumentedOperation): { properties: Record<string, Schema>; required: string[] } => ({
  properties: (body?.['properties'] ?? {}) as Record<string, Schema>,
  required: (body?.['required'] ?? []) as string[],
})

const withBody = (
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
  body: unknown,
): Request => ({
  ...encodePlain(operation, token, content),
  body: withLiterals(body),
})

const invalid = ['422 validation_failed']

function fieldMiss(
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
): NearMiss {
  const [name, schema] = chance.pick(Object.entries(schemaOfBody(operation).properties))
  const value = chance.pick(wrongValues(schema))
  return {
    about: `${name} is ${withLiterals(value).slice(0, 60)}`,
    request: withBody(operation, token, content, { ...content.body, [name]: value }),
    allowed: invalid,
  }
}

function missingMiss(chance: Chance, operation: DocumentedOperation, token: string, content: RequestContent) {
  const { required } = schemaOfBody(operation)
  if (required.length === 0) return undefined
  const name = chance.pick(required)
  const { [name]: _, ...rest } = content.body ?? {}
  const isConfiguration = operation.responses.get(422)?.codes.has('incomplete_configuration')
  const error =
    name === 'reason' ? 'reason_required' : isConfiguration ? 'incomplete_configuration' : 'validation_failed'
  return {
    about: `no ${name}`,
    request: withBody(operation, token, content, rest),
    allowed: [`422 ${error}`],
  }
}

function extraMiss(
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
): NearMiss {
  const name = chance.pick([
    'x',
    '',
    'Reason',
    'reason ',
    'id',
    'version',
    'toString',
    'hasOwnProperty',
    '__proto__',
    'constructor',
    '\u0000',
    'x'.repeat(5000),
  ])
  const value = chance.pick([
    1,
    null,
    '',
    literal('[[[[[[]]]]]]'),
    literal('{"prototype":{}}'),
    literal(`${'['.repeat(5000)}${']'.repeat(5000)}`),
  ])
  const members = withLiterals(content.body).slice(1, -1)
  const extra = `${JSON.stringify(name)}:${withLiterals(value)}`
  return {
    about: `"${name.slice(0, 20)}" besides`,
    request: {
      ...encodePlain(operation, token, content),
      body: `{${[members, extra].filter(Boolean).join(',')}}`,
    },
    // The JSON parser rejects keys that would change an object's prototype.
    allowed: ['__proto__', 'constructor'].includes(name) ? [...invalid, '400 invalid_json'] : invalid,
  }
}

const brokenJson: readonly ((text: string) => string | Buffer)[] = [
  (text) => text.slice(0, -1),
  (text) => `${text}}`,
  (text) => `${text}{}`,
  (text) => text.replace('{', "{'a':1,"),
  (text) => text.replace('{', '{a:1,'),
  (text) => `${text.slice(0, -1)},}`,
  (text) => `/* */${text}`,
  (text) => text.replace('{', '{"a":NaN,'),
  (text) => text.replace('{', '{"a":01,'),
  (text) => text.replace('{', '{"a":"\t",'),
  (text) => text.replace('{', '{"a":"\\x41",'),
  (text) => text.replace('{', '{"a":undefined,'),
  () => '{',
  () => '"',
  () => 'reason=x',
  () => '<a/>',
  (text) => Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0xff, 0xfe]), Buffer.from('}')]),
  (text) => Buffer.from(text.replace('{', '{"a":"\u00e9",'), 'latin1'),
  (text) => Buffer.from(text, 'utf16le'),
  (text) =>
    Buffer.concat([
      Buffer.from(text.slice(0, -1)),
      Buffer.from([0x2c, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]),
    ]),
]

function jsonMiss(
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
): NearMiss {
  const plain = encodePlain(operation, token, content)
  return {
    about: 'broken JSON',
    request: { ...plain, body: chance.pick(brokenJson)(String(plain.body)) },
    allowed: ['400 invalid_json'],
  }
}

function shapeMiss(
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
): NearMiss {
  const shape = chance.pick(['[]', '[{}]', '1', '"x"', 'null', 'true', '[[[[]]]]'])
  return {
    about: `the body ${shape}`,
    request: { ...encodePlain(operation, token, content), body: shape },
    allowed: invalid,
  }
}

const wrongMedia = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/xml',
  'application/jsonx',
  'application/merge-patch+json',
  'application/json; charset=iso-8859-1',
  'application/json; charset=utf-16',
  'json',
  '*/*',
]

function mediaMiss(
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
): NearMiss {
  const plain = encodePlain(operation, token, content)
  const type = chance.happens(0.1) ? undefined : chance.pick(wrongMedia)
  const others = plain.headers.filter(([name]) => name !== 'content-type')
  return {
    about: `Content-Type ${type}`,
    request: { ...plain, headers: type === undefined ? others : [...others, ['content-type', type]] },
    allowed: ['415 unsupported_media_type'],
  }
}

const bodyLimitOf = ({ id }: DocumentedOperation): number => (id === 'domains.edit' ? 1024 * 1024 : 64 * 1024)

function sizeMiss(
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
): NearMiss {
  const plain = encodePlain(operation, token, content)
  return {
    about: 'one byte too many',
    request: {
      ...plain,
      body: String(plain.body).padEnd(bodyLimitOf(operation) + 1),
      chunks: chance.happens(0.5) ? [8192] : undefined,
    },
    allowed: ['413 body_too_large'],
  }
}
