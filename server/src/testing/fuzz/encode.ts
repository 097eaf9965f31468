import type { Chance } from '../harness/random.ts'
import type { DocumentedOperation } from './document.ts'
import { shuffled } from './draw.ts'
import type { Request } from './http.ts'

/** The content of a request. It can be encoded in several ways, and the service must treat all of them alike. */
export interface RequestContent {
  params: Readonly<Record<string, string | number>>
  query?: Readonly<Record<string, string | number | boolean>>
  headers?: readonly (readonly [string, string])[]
  body?: Readonly<Record<string, unknown>> | undefined
}

export function pathOf({ path }: DocumentedOperation, params: RequestContent['params']): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(params[name]))
}

export const queryOf = (query: RequestContent['query'] = {}): string => {
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

export function encodePlain(operation: DocumentedOperation, token: string, content: RequestContent): Request {
  const { body } = content
  return {
    method: operation.method,
    path: pathOf(operation, content.params) + queryOf(content.query),
    headers: [
      ['authorization', `Bearer ${token}`],
      ...(body === undefined ? [] : [['content-type', 'application/json'] as const]),
      ...(content.headers ?? []),
    ],
    body: body === undefined ? undefined : JSON.stringify(body),
  }
}

/** Encodes the request in one of several equivalent forms. */
export function encodeVaried(
  chance: Chance,
  operation: DocumentedOperation,
  token: string,
  content: RequestContent,
): Request {
  const plain = encodePlain(operation, token, content)
  const { body } = content
  const path = chance.happens(0.03) ? escapedDigits(plain.path) : plain.path
  if (body === undefined) return { ...plain, path }
  const text = chance.happens(0.1) ? otherJson(chance, body) : JSON.stringify(body)
  return {
    ...plain,
    path,
    headers: plain.headers.map(([name, value]) => [
      name,
      name === 'content-type' && chance.happens(0.1) ? chance.pick(contentTypes) : value,
    ]),
    body: text,
    chunks: chance.happens(0.05) ? [1 + chance.below(7), 1 + chance.below(200)] : undefined,
  }
}

const contentTypes = [
  'application/json; charset=utf-8',
  'application/json;charset=UTF-8',
  'application/json; charset="utf-8"',
]

/** Percent-encodes the digits of path parameters: `%31` is `1`. */
const escapedDigits = (path: string): string => {
  const [before = '', query] = path.split('?')
  const escaped = before.replaceAll(/\/\d+/g, (digits) => digits.replaceAll(/\d/g, (digit) => `%3${digit}`))
  return query === undefined ? escaped : `${escaped}?${query}`
}

function otherJson(chance: Chance, body: Readonly<Record<string, unknown>>): string {
  const members = shuffled(chance, Object.entries(body))
  const space = chance.pick(['', ' ', '\n\t', '\r\n  '])
  const written = members.map(
    ([name, value]) => `${space}${escaped(name)}${space}:${space}${JSON.stringify(value)}`,
  )
  // If a name is duplicated, the last value wins, as in JSON.parse.
  const [first] = members
  if (first && chance.happens(0.2)) written.unshift(`${JSON.stringify(first[0])}:null`)
  return `${space}{${written.join(',')}${space}}${space}`
}

const escaped = (name: string): string =>
  `"${[...name].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`
