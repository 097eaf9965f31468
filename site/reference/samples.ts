import type { Document, Operation } from './document.ts'
import { exampleOf } from './example.ts'

/** A request in three languages, made from an operation's example. */
export interface Call {
  method: string
  url: string
  body: unknown
  credential: Credential
}

/** What the request sends to identify its caller. The sign-in operations use a cookie. */
type Credential = 'POSTERN_API_KEY' | 'POSTERN_TOKEN' | 'cookie' | 'none'

const origin = 'https://mail.example.com'

export function callOf(document: Document, method: string, path: string, operation: Operation): Call {
  const { parameters = [], requestBody } = operation
  const sampleOf = (name: string): string => {
    const parameter = parameters.find((one) => one.name === name)
    return `${parameter?.example ?? (parameter ? exampleOf(document, parameter.schema, name) : '')}`
  }
  const query = parameters
    .filter((parameter) => parameter.in === 'query' && parameter.required)
    .map(({ name }) => `${name}=${encodeURIComponent(sampleOf(name))}`)
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(sampleOf(name)))
  return {
    method: method.toUpperCase(),
    url: `${origin}${filled}${query.length > 0 ? `?${query.join('&')}` : ''}`,
    body: bodyOf(requestBody),
    credential: credentialOf(operation, path),
  }
}

/** Undefined if the request needs no body and the example has no fields. */
function bodyOf(requestBody: Operation['requestBody']): unknown {
  const example = Object.values(requestBody?.content ?? {})[0]?.example
  const isEmpty = typeof example === 'object' && example !== null && Object.keys(example).length === 0
  return isEmpty && !requestBody?.required ? undefined : example
}

function credentialOf({ security }: Operation, path: string): Credential {
  const schemes = security.flatMap((one) => Object.keys(one))
  if (schemes.includes('apiKey')) return 'POSTERN_API_KEY'
  if (schemes.includes('accessToken')) return 'POSTERN_TOKEN'
  return path.startsWith('/v1/auth/') ? 'cookie' : 'none'
}

const json = (value: unknown): string => JSON.stringify(value, undefined, 2)
const indent = (text: string, by: number): string => text.replaceAll('\n', `\n${' '.repeat(by)}`)

export function curlSample({ method, url, body, credential }: Call): string {
  const parts = [
    `curl ${method === 'GET' || (method === 'POST' && body !== undefined) ? '' : `-X ${method} `}'${url}'`,
    ...(credential === 'cookie' ? ['--cookie cookies --cookie-jar cookies'] : []),
    ...(credential.startsWith('POSTERN') ? [`-H "Authorization: Bearer $${credential}"`] : []),
    ...(body === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d '${json(body).replaceAll("'", "'\\''")}'`]),
  ]
  return parts.join(' \\\n  ')
}

export function typescriptSample({ method, url, body, credential }: Call): string {
  const headers = [
    ...(credential.startsWith('POSTERN') ? [`Authorization: \`Bearer \${process.env.${credential}}\`,`] : []),
    ...(body === undefined ? [] : ["'Content-Type': 'application/json',"]),
  ]
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}',`]),
    ...(credential === 'cookie' ? ["credentials: 'include',"] : []),
    ...(headers.length > 0 ? [`headers: {\n    ${headers.join('\n    ')}\n  },`] : []),
    ...(body === undefined ? [] : [`body: JSON.stringify(${indent(json(body), 2)}),`]),
  ]
  const given = options.length > 0 ? `, {\n  ${options.join('\n  ')}\n}` : ''
  return `const response = await fetch('${url}'${given})
if (!response.ok) throw new Error(await response.text())`
}

export function pythonSample({ method, url, body, credential }: Call): string {
  const by = credential === 'cookie' ? 'session' : 'requests'
  const options = [
    `"${url}",`,
    ...(credential.startsWith('POSTERN')
      ? [`headers={"Authorization": f"Bearer {os.environ['${credential}']}"},`]
      : []),
    ...(body === undefined ? [] : [`json=${indent(pythonValue(body, 0), 4)},`]),
    'timeout=30,',
  ]
  const imports = credential.startsWith('POSTERN') ? 'import os\nimport requests\n' : 'import requests\n'
  const session = credential === 'cookie' ? 'session = requests.Session()  # keeps the cookie\n' : ''
  return `${imports}
${session}response = ${by}.${method.toLowerCase()}(
    ${options.join('\n    ')}
)
response.raise_for_status()`
}

/** JSON with the literals of Python. */
function pythonValue(value: unknown, depth: number): string {
  const inner = `\n${'    '.repeat(depth + 1)}`
  const end = `\n${'    '.repeat(depth)}`
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]'
    return `[${inner}${value.map((one) => `${pythonValue(one, depth + 1)},`).join(inner)}${end}]`
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
    if (entries.length === 0) return '{}'
    return `{${inner}${entries.map(([key, one]) => `${JSON.stringify(key)}: ${pythonValue(one, depth + 1)},`).join(inner)}${end}}`
  }
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return JSON.stringify(value)
}
