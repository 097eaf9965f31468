import { readFile } from 'node:fs/promises'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import type { OpenapiDocument, Operation } from '../server/src/http/openapi.ts'

/**
 * Lints openapi/postern.v1.json with Redocly's strict rules and custom rules. To prove that the rules work, a fault is
 * planted in a copy of the document for each rule, and the rule must find it.
 */
interface Fault {
  rule: string
  message: string
}

interface NamedOperation extends Operation {
  path: string
  method: string
}

const file = new URL('../openapi/postern.v1.json', import.meta.url)
const json = { severity: 'error', allowedValues: ['application/json'] } as const

const config = await createConfig({
  extends: ['recommended-strict'],
  rules: {
    'operation-description': 'error',
    'operation-singular-tag': 'error',
    'operation-tag-defined': 'error',
    'parameter-description': 'error',
    'path-params-defined': 'error',
    'request-mime-type': json,
    // Exports are streams of lines, and the logo is an image.
    'response-mime-type': {
      ...json,
      allowedValues: ['application/json', 'application/x-ndjson', 'text/csv', 'image/svg+xml', 'image/png'],
    },
    'spec-strict-refs': 'error',
    // The custom rules are stricter where a caller can make a mistake, and do not apply where no mistake is possible.
    'operation-4xx-response': 'off',
  },
})

/** The responses that every administrative and customer mutation has; custom operations can have fewer. */
const mutationErrors = [400, 401, 403, 404, 409, 422, 429, 500]

const controlNouns =
  /^\/v1\/projects(\/\{project_id\}(\/(members|domains|endpoints|routing|api-keys)\b.*)?)?$/

const ourRules: Record<string, (operation: NamedOperation) => string | false | undefined> = {
  'mutation-errors'({ path, method, parameters = [], responses }) {
    const isOfKind = path.startsWith('/v1/admin/') || controlNouns.test(path)
    // Every administrative mutation has a dry run; a POST without one is a read with a long input.
    const isRead = path.startsWith('/v1/admin/') && !parameters.some(({ name }) => name === 'dry_run')
    if (!isOfKind || method === 'get' || (method === 'post' && isRead)) return
    const honoursIfMatch = parameters.some(({ in: place, name }) => place === 'header' && name === 'If-Match')
    const expected = [...mutationErrors, ...(honoursIfMatch ? [412] : [])].sort().join(', ')
    const documented = errorsOf(responses).sort().join(', ')
    return documented !== expected && `documents ${documented} and not ${expected}`
  },
  'caller-errors': ({ security = [], responses }) =>
    security.length > 0 && !('401' in responses) && 'needs a caller, but does not document 401',
  'body-errors': ({ requestBody, responses }) =>
    requestBody && !('400' in responses && '422' in responses) && 'has a body, but not both 400 and 422',
  'error-is-problem'({ responses }) {
    const wrong = errorsOf(responses).filter((status) => {
      const { content = {} } = responses[status] ?? {}
      const isProblem = content['application/json']?.schema?.['$ref'] === '#/components/schemas/Problem'
      return !isProblem || Object.keys(content).length !== 1
    })
    return wrong.length > 0 && `documents ${wrong.join(', ')} with another schema than Problem`
  },
  'body-example'({ requestBody }) {
    const media = Object.values(requestBody?.content ?? {})
    return media.some((one) => !('example' in one || 'examples' in one)) && 'has a body without an example'
  },
  'security-stated': ({ security }) => security === undefined && 'does not say who may call it',
  'id-begins-with-tag': ({ operationId = '', tags = [] }) =>
    operationId.slice(0, operationId.lastIndexOf('.')) !== tags[0] &&
    `is not called after its tag, ${tags[0] ?? 'of which it has none'}`,
}

const errorsOf = (responses: Operation['responses']): string[] =>
  Object.keys(responses).filter((status) => Number(status) >= 400)

const operationsOf = ({ paths }: OpenapiDocument): NamedOperation[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method })),
  )

async function lint(document: OpenapiDocument): Promise<Fault[]> {
  const operations = operationsOf(document)
  const ours = Object.entries(ourRules).flatMap(([rule, check]) =>
    operations.flatMap((operation) => {
      const complaint = check(operation)
      const name = operation.operationId ?? `${operation.method} ${operation.path}`
      return complaint ? [{ rule, message: `${name} ${complaint}` }] : []
    }),
  )
  const source = JSON.stringify(defaultsAsExamples(document))
  const problems = await lintFromString({ source, absoluteRef: 'postern.v1.json', config })
  const theirs = problems.map(({ ruleId, message, location }) => ({
    rule: ruleId,
    message: `${location[0]?.pointer ?? ''} ${message}`,
  }))
  return [...ours, ...theirs]
}

/** Defaults must match their schemas. Redocly checks only examples. */
function defaultsAsExamples<T>(value: T, isMap = false): T {
  if (Array.isArray(value)) return value.map((item) => defaultsAsExamples(item)) as T
  if (typeof value !== 'object' || value === null) return value
  const copy: Record<string, unknown> = Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, defaultsAsExamples(inner, key === 'properties')]),
  )
  if ('default' in copy && !isMap) {
    const examples = Array.isArray(copy['examples']) ? copy['examples'] : []
    copy['examples'] = [...examples, copy['default']]
  }
  return copy as T
}

interface Planted {
  fault: string
  rule: string
  /** A leading `edit` refers to an administrative edit, and a leading `body` to the media type of that edit's body. */
  at: string[]
  /** If absent, the existing value is removed. */
  becomes?(edit: NamedOperation): unknown
}

/** One fault for each custom rule and for the most important Redocly rules. */
const planted: Planted[] = [
  { fault: 'a mutation without 409', rule: 'mutation-errors', at: ['edit', 'responses', '409'] },
  { fault: 'If-Match without 412', rule: 'mutation-errors', at: ['edit', 'responses', '412'] },
  {
    fault: '412 without If-Match',
    rule: 'mutation-errors',
    at: ['edit', 'parameters'],
    becomes: ({ parameters }) => parameters?.filter(({ name }) => name !== 'If-Match'),
  },
  {
    fault: 'a mutation with 503',
    rule: 'mutation-errors',
    at: ['edit', 'responses', '503'],
    becomes: ({ responses }) => responses['500'],
  },
  { fault: 'a caller who is never refused', rule: 'caller-errors', at: ['edit', 'responses', '401'] },
  { fault: 'a body that is never refused', rule: 'body-errors', at: ['edit', 'responses', '422'] },
  { fault: 'an error without a body', rule: 'error-is-problem', at: ['edit', 'responses', '409', 'content'] },
  {
    fault: 'an error of another shape',
    rule: 'error-is-problem',
    at: ['edit', 'responses', '409', 'content', 'application/json', 'schema'],
    becomes: () => ({ type: 'object' }),
  },
  { fault: 'nothing about the caller', rule: 'security-stated', at: ['edit', 'security'] },
  {
    fault: 'an unknown way to prove who calls',
    rule: 'security-defined',
    at: ['edit', 'security'],
    becomes: () => [{ planted: [] }],
  },
  { fault: 'a body without an example', rule: 'body-example', at: ['body', 'example'] },
  {
    fault: 'an example that does not fit',
    rule: 'no-invalid-media-type-examples',
    at: ['body', 'example'],
    becomes: () => ({ planted: true }),
  },
  {
    fault: 'a default that does not fit',
    rule: 'no-invalid-schema-examples',
    at: ['body', 'schema'],
    becomes: () => ({ type: 'integer', default: 'fifty' }),
  },
  {
    fault: 'a reference to nowhere',
    rule: 'no-unresolved-refs',
    at: ['body', 'schema'],
    becomes: () => ({ $ref: '#/components/schemas/Nowhere' }),
  },
  { fault: 'no operation id', rule: 'operation-operationId', at: ['edit', 'operationId'] },
  {
    fault: 'two operations of one id',
    rule: 'operation-operationId-unique',
    at: ['edit', 'operationId'],
    becomes: () => 'health.live',
  },
  { fault: 'no summary', rule: 'operation-summary', at: ['edit', 'summary'] },
  { fault: 'no description', rule: 'operation-description', at: ['edit', 'description'] },
  { fault: 'another tag', rule: 'id-begins-with-tag', at: ['edit', 'tags'], becomes: () => ['health'] },
  { fault: 'tags that are not listed', rule: 'operation-tag-defined', at: ['tags'], becomes: () => [] },
  { fault: 'a tag without a description', rule: 'tag-description', at: ['tags', '0', 'description'] },
  {
    fault: 'a parameter without a description',
    rule: 'parameter-description',
    at: ['edit', 'parameters', '0', 'description'],
  },
  {
    fault: 'a parameter of the path that is left out',
    rule: 'path-parameters-defined',
    at: ['edit', 'parameters'],
    becomes: ({ parameters }) => parameters?.filter(({ in: place }) => place !== 'path'),
  },
  {
    fault: 'an unused schema',
    rule: 'no-unused-components',
    at: ['components', 'schemas', 'Planted'],
    becomes: () => ({ type: 'string' }),
  },
  {
    fault: 'a member that OpenAPI does not know',
    rule: 'struct',
    at: ['edit', 'planted'],
    becomes: () => 1,
  },
]

function plant(document: OpenapiDocument, { at, becomes }: Planted): OpenapiDocument {
  const edit = operationsOf(document).find(
    ({ path, method }) => method === 'patch' && path.startsWith('/v1/admin/'),
  )
  if (!edit) throw new Error('The document has no administrative edit to plant faults in.')
  const inEdit = ['paths', edit.path, 'patch']
  const inBody = [...inEdit, 'requestBody', 'content', 'application/json']
  const [first = '', ...rest] = at
  const members = [...(first === 'edit' ? inEdit : first === 'body' ? inBody : [first]), ...rest]
  const last = members.pop() ?? ''

  const copy = structuredClone(document)
  let place = copy as unknown as Record<string, unknown>
  for (const member of members) place = place[member] as Record<string, unknown>
  if (becomes) place[last] = becomes(edit)
  else delete place[last]
  return copy
}

const document: OpenapiDocument = JSON.parse(await readFile(file, 'utf8'))
const present = await lint(document)
const problems = present.map(({ rule, message }) => `${rule}: ${message}`)

const countOf = (rule: string, found: Fault[]): number => found.filter((one) => one.rule === rule).length
const missed: Planted[] = []
for (const fault of planted) {
  const found = await lint(plant(document, fault))
  if (countOf(fault.rule, found) <= countOf(fault.rule, present)) missed.push(fault)
}
problems.push(...missed.map(({ rule, fault }) => `The rule ${rule} did not find ${fault}.`))

process.stdout.write(`${operationsOf(document).length} operations checked.\n`)
process.stdout.write(`${planted.length - missed.length} of ${planted.length} planted faults found.\n`)
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1
