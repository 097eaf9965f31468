import type { Chance } from '../harness/random.ts'
import { bodyMisses, type Miss, type NearMiss } from './body-misses.ts'
import type { DocumentedOperation, Parameter } from './document.ts'
import { weighted } from './draw.ts'
import { encodePlain, pathOf, queryOf, type RequestContent } from './encode.ts'
import type { Request } from './http.ts'

/** The service must accept the content before it is modified. */
export function nearMiss(
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
): NearMiss | undefined {
  const misses: [number, Miss][] = [
    [16, pathMiss],
    [14, queryMiss],
    [12, headerMiss],
    [5, methodMiss],
    [5, addressMiss],
    ...(content.body === undefined ? [] : bodyMisses),
  ]
  return weighted(chance, misses)(chance, operation, token, content)
}

const badPathIds = [
  '',
  '-1',
  '+1',
  '01',
  '1e3',
  '1.0',
  '0x10',
  '%20ID',
  'ID%20',
  'ID%0A',
  'ID%00',
  '9007199254740992',
  '9223372036854775808',
  '99999999999999999999',
  'NaN',
  'null',
  '__proto__',
  'constructor',
  '%EF%BC%91',
  'ID;x=1',
  'ID%2F',
  '%2e%2e%2fID',
  "ID'--",
  'ID,ID',
  '%',
  '%zz',
  '%C0%AF',
  '*',
  'x'.repeat(500),
]

const replaced = (request: Request, path: string): Request => ({ ...request, path })

function pathMiss(chance: Chance, operation: DocumentedOperation, token: string, content: RequestContent) {
  const names = Object.keys(content.params)
  if (names.length === 0) return undefined
  const name = chance.pick(names)
  const bad = chance.pick(badPathIds).replaceAll('ID', String(content.params[name]))
  const path = pathOf(operation, { ...content.params, [name]: bad }) + queryOf(content.query)
  return {
    about: `the ${name} ${bad}`,
    request: replaced(encodePlain(operation, token, content), path),
    // A path with an empty segment is a different path and does not belong to any operation.
    allowed: bad === '' ? ['404 not_found', '400 invalid_parameter'] : ['400 invalid_parameter'],
  }
}

/** Values that the schema of a parameter does not allow. */
function badQueryValues({ schema }: Parameter): string[] {
  const common = ['', '[]', '%00', '%ff', '%ed%a0%80']
  const { minimum, maximum } = schema as { minimum?: number; maximum?: number }
  const beyond = [minimum === undefined ? [] : [minimum - 1], maximum === undefined ? [] : [maximum + 1]]
    .flat()
    .map(String)
  switch (schema['type']) {
    case 'boolean':
      return [...common, 'True', 'TRUE', '1', '0', 'yes', 'on', 'true%20', '%20true', 'truex', 'null']
    case 'integer':
      return [
        ...common,
        ...beyond,
        '-1',
        '+1',
        '01',
        '1e1',
        '1.0',
        '0x1',
        'x',
        '9007199254740992',
        '%201',
        '1,2',
      ]
    default: {
      const long = typeof schema['maxLength'] === 'number' ? ['x'.repeat(schema['maxLength'] + 1)] : []
      const empty = schema['minLength'] === 1 ? [''] : []
      if ('format' in schema) return ['', 'yesterday', '2026-13-01T00:00:00Z', '2026-11-14', '%00']
      if ('pattern' in schema) return ['', 'A:1', 'a b', 'a:', ':1', "endpoint:1'--", '%00']
      if ('enum' in schema) return ['', 'x', '%00']
      return ['%00', ...long, ...empty]
    }
  }
}

function queryMiss(chance: Chance, operation: DocumentedOperation, token: string, content: RequestContent) {
  const known = operation.parameters.filter((one) => one.in === 'query')
  const path = pathOf(operation, content.params)
  const miss = (query: string, about: string): NearMiss => ({
    about,
    request: replaced(encodePlain(operation, token, { ...content, query: {} }), `${path}?${query}`),
    allowed: ['400 invalid_parameter'],
  })
  if (known.length === 0 || chance.happens(0.3)) {
    const name = chance.pick([
      'x',
      'dry-run',
      'dryrun',
      'Dry_Run',
      'dry_run%20',
      'dry_run[]',
      '__proto__',
      'limit%00',
      '',
    ])
    // A parameter without a name is an unknown parameter as well.
    return miss(`${name}=true`, `the query parameter "${name}"`)
  }
  const parameter = chance.pick(known)
  if (chance.happens(0.15)) {
    return miss(`${parameter.name}=1&${parameter.name}=1`, `${parameter.name} twice`)
  }
  const value = chance.pick(badQueryValues(parameter))
  return miss(`${parameter.name}=${value}`, `${parameter.name}=${value}`)
}

const badHeaders: readonly (readonly [string, string])[] = [
  ['if-match', ''],
  ['if-match', '1'],
  ['if-match', '"1'],
  ['if-match', 'W/1'],
  ['if-match', 'w/"1"'],
  ['if-match', '"1" "2"'],
  ['if-match', '*, "1"'],
  ['if-match', '"\u00e9"'],
  ['if-match', ','],
  ['idempotency-key', ''],
  ['idempotency-key', 'two words'],
  ['idempotency-key', 'k'.repeat(256)],
  ['idempotency-key', 'schl\u00fcssel'],
  ['idempotency-key', 'tab\there'],
]

function headerMiss(
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
): NearMiss {
  const plain = encodePlain(operation, token, { ...content, headers: [] })
  if (chance.happens(0.3)) return callerMiss(chance, plain)
  if (chance.happens(0.1)) {
    const twice = [...plain.headers, ['idempotency-key', 'a'], ['idempotency-key', 'b']] as const
    return { about: 'two keys', request: { ...plain, headers: twice }, allowed: ['400 invalid_parameter'] }
  }
  const header = chance.pick(badHeaders)
  return {
    about: header.join(': '),
    request: { ...plain, headers: [...plain.headers, header] },
    allowed: ['400 invalid_parameter'],
  }
}

const strangers: readonly (readonly [string | undefined, string])[] = [
  [undefined, '401 unauthenticated'],
  ['', '401 unauthenticated'],
  ['Bearer', '401 unauthenticated'],
  ['Bearer x', '401 unauthenticated'],
  ['Bearer a.b.c', '401 unauthenticated'],
  ['Bearer eyJhbGciOiJub25lIn0.e30.', '401 unauthenticated'],
  ['Basic YTpi', '401 unauthenticated'],
  ['Bearer pk_live_x', '403 api_key_not_allowed'],
  [`Bearer pk_test_${'A'.repeat(49)}`, '403 api_key_not_allowed'],
]

function callerMiss(chance: Chance, plain: Request): NearMiss {
  const [authorization, allowed] = chance.pick(strangers)
  const headers = plain.headers.filter(([name]) => name !== 'authorization')
  return {
    about: `Authorization ${authorization}`,
    request: {
      ...plain,
      headers: authorization === undefined ? headers : [['authorization', authorization], ...headers],
    },
    allowed: [allowed],
  }
}

function methodMiss(
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
): NearMiss {
  const plain = encodePlain(operation, token, content)
  const [method, response] = chance.pick([
    ['OPTIONS', '405 method_not_allowed'],
    ['TRACE', '405 method_not_allowed'],
    ['QUERY', '405 method_not_allowed'],
    // The router does not support these methods.
    ['PROPFIND', '404 not_found'],
    ['LINK', '404 not_found'],
    ['PURGE', '404 not_found'],
  ] as const)
  return {
    about: `the method ${method}`,
    request: { ...plain, method },
    allowed: [response],
    matchesNoOperation: true,
  }
}

function addressMiss(
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
): NearMiss {
  const plain = encodePlain(operation, token, { ...content, query: {} })
  const path = chance.pick([
    `${plain.path}/`,
    `/${plain.path}`,
    plain.path.replace('/admin/', '/admin//'),
    `${plain.path}/x/y`,
    plain.path.replace('/admin/', '/admin/./'),
    plain.path.replace('/admin/', '/Admin/'),
    `${plain.path}%2f`,
    `${plain.path};a=b`,
    plain.path.replace(/\/(\w[\w-]*)$/, '%2F$1'),
  ])
  return {
    about: `the path ${path}`,
    request: replaced(plain, path),
    // An escaped slash or a semicolon can become part of a parameter, and a trailing slash can start an empty one.
    allowed: ['404 not_found', '400 invalid_parameter', '405 method_not_allowed'],
    matchesNoOperation: true,
  }
}
