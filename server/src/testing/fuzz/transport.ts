import type { Request } from './http.ts'

/**
 * Malformed, unusual or non-HTTP input. The service must reject it with the standard error body or interpret it
 * correctly.
 */
export interface Transmission {
  about: string
  request: Request
  /** Each entry is `<status> <error code>`, with `-` for the code of a success. */
  allowed: readonly string[]
}

const refused = ['400 invalid_parameter']

interface RequestTarget {
  token: string
  /** A readable project. No request may change its name. */
  projectId: number
}

type Line = readonly [about: string, head: string, allowed: readonly string[], body?: string]

const json = 'Content-Type: application/json\r\n'
const shown = ['200 -']

/** Hand-written requests, all with a valid token. */
function requestWriter({ token, projectId }: RequestTarget) {
  const identity = `Host: localhost\r\nAuthorization: Bearer ${token}\r\n`
  const path = `/v1/admin/projects/${projectId}`
  return {
    identity,
    path,
    get: (more = '', address = path, version = ' HTTP/1.1') =>
      `GET ${address}${version}\r\n${identity}${more}\r\n`,
    patch: (more: string) => `PATCH ${path} HTTP/1.1\r\n${identity}${more}\r\n`,
  }
}

function oddRequestLines(target: RequestTarget): Line[] {
  const { identity, path, get } = requestWriter(target)
  const at = (address: string) => get('', address)
  return [
    ['a valid request', get(), shown],
    ['a leading empty line', `\r\n${get()}`, shown],
    ['an unknown method', `BREW ${path} HTTP/1.1\r\n${identity}\r\n`, refused],
    ['a method in lower case', `get ${path} HTTP/1.1\r\n${identity}\r\n`, refused],
    ['no HTTP version', get('', path, ''), [...shown, ...refused]],
    ['an unknown HTTP version', get('', path, ' HTTP/7.3'), refused],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', refused],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'.padEnd(200, '\x00'), refused],
    ['not an HTTP request', 'hello\r\n\r\n', refused],
    ['a path with a space', at('/v1/admin/projects/1 2'), refused],
    ['a path in UTF-8', at('/v1/admin/projects/\xc3\xbc'), refused],
    ['a path with a NUL', at('/v1/admin/projects/1\x00'), refused],
    ['no path', at('?x=1'), [...refused, '404 not_found']],
    ['an absolute URL', at(`http://example.org${path}`), [...shown, '404 not_found', ...refused]],
    ['an asterisk', `OPTIONS * HTTP/1.1\r\n${identity}\r\n`, ['404 not_found', ...refused]],
    ['a long path', at(`/v1/admin/projects/${'1'.repeat(20_000)}`), refused],
  ]
}

function oddHeaders(target: RequestTarget): Line[] {
  const { get } = requestWriter(target)
  const settings = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n'
  return [
    ['no Host', get().replace('Host: localhost\r\n', ''), refused],
    ['two Host headers', get('Host: example.org\r\n'), [...shown, ...refused]],
    ['a long header', get(`X: ${'y'.repeat(20_000)}\r\n`), refused],
    ['many headers', get('X: y\r\n'.repeat(500)), [...shown, ...refused]],
    ['a header without a name', get(': x\r\n'), refused],
    ['a header without a colon', get('x\r\n'), refused],
    ['a header with a NUL', get('X: a\x00b\r\n'), refused],
    ['a space before the colon', get('Content-Length : 5\r\n'), refused],
    ['a folded header', get('X: a\r\n b\r\n'), [...shown, ...refused]],
    ['a bare line feed', get().replaceAll('\r\n', '\n'), [...shown, ...refused]],
    ['an unknown expectation', get('Expect: banana\r\n'), shown],
    ['an upgrade to WebSocket', get('Connection: Upgrade\r\nUpgrade: websocket\r\n'), shown],
    ['an upgrade to HTTP/2', get(settings), shown],
  ]
}

function oddBodies(target: RequestTarget): Line[] {
  const { get, patch } = requestWriter(target)
  const chunked = patch(`${json}Transfer-Encoding: chunked\r\n`)
  const long = (length: string) => patch(`${json}Content-Length: ${length}\r\n`)
  const broken = [...refused, '400 invalid_json']
  const codings = patch(`${json}Transfer-Encoding: gzip, chunked\r\n`)
  const packed = patch(`${json}Content-Encoding: gzip\r\nContent-Length: 4\r\n`)
  return [
    [
      'an Expect: 100-continue header',
      patch(`${json}Expect: 100-continue\r\nContent-Length: 1\r\n`),
      ['400 invalid_json'],
      '{',
    ],
    [
      'Content-Length and chunked encoding',
      patch(`${json}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n`),
      refused,
      '0\r\n\r\n',
    ],
    [
      'two Content-Length headers',
      patch(`${json}Content-Length: 5\r\nContent-Length: 6\r\n`),
      refused,
      '{"a":1',
    ],
    ['a negative Content-Length', long('-5'), refused, '{}'],
    ['a Content-Length in words', long('five'), refused, '{}'],
    ['a Content-Length above 64 bits', long('99999999999999999999'), refused],
    ['a Content-Length of 100 GB', long('99999999999'), ['413 body_too_large']],
    ['a body longer than Content-Length', long('1'), broken, '{"name":"x"}'],
    ['a chunk without a size', chunked, broken, 'x\r\n'],
    ['a chunk longer than its size', chunked, broken, '1\r\n{}\r\n0\r\n\r\n'],
    ['an unknown transfer coding', patch(`${json}Transfer-Encoding: xchunked\r\n`), refused, '0\r\n\r\n'],
    ['two transfer codings', codings, [...broken, '422 validation_failed'], '1\r\nx\r\n0\r\n\r\n'],
    ['a compressed body', packed, ['400 invalid_json', '415 unsupported_media_type'], '\x1f\x8b\x08\x00'],
    ['a GET with a body', get(`${json}Content-Length: 2\r\n`), [...shown, ...broken], '{}'],
    [
      'a body that is a script',
      patch('Content-Type: text/html\r\nContent-Length: 8\r\n'),
      ['415 unsupported_media_type'],
      '<script>',
    ],
  ]
}

const lines = (target: RequestTarget): Line[] => [
  ...oddRequestLines(target),
  ...oddHeaders(target),
  ...oddBodies(target),
]

/** Entry `n` of the table, modulo its length. */
export function transmission(target: RequestTarget, n: number): Transmission {
  const table = lines(target)
  const [about, head, allowed, body = ''] = table[n % table.length] ?? ['nothing', '', []]
  const raw = Buffer.from(head + body, 'latin1')
  const method = /^\s*([A-Z]+) /.exec(head)?.[1] ?? 'GET'
  return { about, request: { method, path: '', headers: [], raw }, allowed }
}

export const transmissionCount = (target: RequestTarget): number => lines(target).length
