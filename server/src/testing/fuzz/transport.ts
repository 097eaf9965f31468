import type { Request } from './http.ts'

/**
 * What arrives where HTTP is expected: written wrong, written oddly, or no HTTP at all. None of it may do anything
 * but be refused, in the two fields in which everything is refused, or be understood as what it means.
 */
export interface Transmission {
  about: string
  request: Request
  /** `status code`, with `-` for the code of a success. */
  allowed: readonly string[]
}

const refused = ['400 invalid_parameter']

interface Scene {
  token: string
  /** A project that may be read, and whose name must stay. */
  projectId: number
}

type Line = readonly [about: string, head: string, allowed: readonly string[], body?: string]

const json = 'Content-Type: application/json\r\n'
const shown = ['200 -']

/** Requests by hand: who asks is right in each of them. */
function writer({ token, projectId }: Scene) {
  const who = `Host: localhost\r\nAuthorization: Bearer ${token}\r\n`
  const path = `/v1/admin/projects/${projectId}`
  return {
    who,
    path,
    get: (more = '', address = path, version = ' HTTP/1.1') =>
      `GET ${address}${version}\r\n${who}${more}\r\n`,
    patch: (more: string) => `PATCH ${path} HTTP/1.1\r\n${who}${more}\r\n`,
  }
}

function oddBeginnings(scene: Scene): Line[] {
  const { who, path, get } = writer(scene)
  const at = (address: string) => get('', address)
  return [
    ['nothing wrong', get(), shown],
    ['an empty line before', `\r\n${get()}`, shown],
    ['an unknown method', `BREW ${path} HTTP/1.1\r\n${who}\r\n`, refused],
    ['a method in lower case', `get ${path} HTTP/1.1\r\n${who}\r\n`, refused],
    ['no version', get('', path, ''), [...shown, ...refused]],
    ['another version', get('', path, ' HTTP/7.3'), refused],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', refused],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'.padEnd(200, '\x00'), refused],
    ['no request', 'hello\r\n\r\n', refused],
    ['an address with a space', at('/v1/admin/projects/1 2'), refused],
    ['an address in UTF-8', at('/v1/admin/projects/\xc3\xbc'), refused],
    ['an address with a NUL', at('/v1/admin/projects/1\x00'), refused],
    ['no path', at('?x=1'), [...refused, '404 not_found']],
    ['an absolute address', at(`http://example.org${path}`), [...shown, '404 not_found', ...refused]],
    ['an asterisk', `OPTIONS * HTTP/1.1\r\n${who}\r\n`, ['404 not_found', ...refused]],
    ['a long address', at(`/v1/admin/projects/${'1'.repeat(20_000)}`), refused],
  ]
}

function oddHeaders(scene: Scene): Line[] {
  const { get } = writer(scene)
  const settings = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n'
  return [
    ['no Host', get().replace('Host: localhost\r\n', ''), refused],
    ['two Hosts', get('Host: example.org\r\n'), [...shown, ...refused]],
    ['a long header', get(`X: ${'y'.repeat(20_000)}\r\n`), refused],
    ['many headers', get('X: y\r\n'.repeat(500)), [...shown, ...refused]],
    ['a header without a name', get(': x\r\n'), refused],
    ['a header without a colon', get('x\r\n'), refused],
    ['a header with a NUL', get('X: a\x00b\r\n'), refused],
    ['a space before the colon', get('Content-Length : 5\r\n'), refused],
    ['a folded header', get('X: a\r\n b\r\n'), [...shown, ...refused]],
    ['a bare line feed', get().replaceAll('\r\n', '\n'), [...shown, ...refused]],
    ['an unknown expectation', get('Expect: banana\r\n'), shown],
    ['a wish to switch', get('Connection: Upgrade\r\nUpgrade: websocket\r\n'), shown],
    ['a wish for HTTP/2', get(settings), shown],
  ]
}

function oddBodies(scene: Scene): Line[] {
  const { get, patch } = writer(scene)
  const chunked = patch(`${json}Transfer-Encoding: chunked\r\n`)
  const long = (length: string) => patch(`${json}Content-Length: ${length}\r\n`)
  const broken = [...refused, '400 invalid_json']
  const codings = patch(`${json}Transfer-Encoding: gzip, chunked\r\n`)
  const packed = patch(`${json}Content-Encoding: gzip\r\nContent-Length: 4\r\n`)
  return [
    [
      'a wish to be told to go on',
      patch(`${json}Expect: 100-continue\r\nContent-Length: 1\r\n`),
      ['400 invalid_json'],
      '{',
    ],
    [
      'a length and chunks',
      patch(`${json}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n`),
      refused,
      '0\r\n\r\n',
    ],
    ['two lengths', patch(`${json}Content-Length: 5\r\nContent-Length: 6\r\n`), refused, '{"a":1'],
    ['a negative length', long('-5'), refused, '{}'],
    ['a length in words', long('five'), refused, '{}'],
    ['a length without end', long('99999999999999999999'), refused],
    ['a length of many gigabytes', long('99999999999'), ['413 body_too_large']],
    ['more than the length', long('1'), broken, '{"name":"x"}'],
    ['a chunk without a size', chunked, broken, 'x\r\n'],
    ['a chunk longer than it says', chunked, broken, '1\r\n{}\r\n0\r\n\r\n'],
    ['an unknown coding', patch(`${json}Transfer-Encoding: xchunked\r\n`), refused, '0\r\n\r\n'],
    ['two codings', codings, [...broken, '422 validation_failed'], '1\r\nx\r\n0\r\n\r\n'],
    ['a packed body', packed, ['400 invalid_json', '415 unsupported_media_type'], '\x1f\x8b\x08\x00'],
    ['a body with a question', get(`${json}Content-Length: 2\r\n`), [...shown, ...broken], '{}'],
    [
      'a script for a body',
      patch('Content-Type: text/html\r\nContent-Length: 8\r\n'),
      ['415 unsupported_media_type'],
      '<script>',
    ],
  ]
}

const lines = (scene: Scene): Line[] => [...oddBeginnings(scene), ...oddHeaders(scene), ...oddBodies(scene)]

/** Line n of the table, again and again. */
export function transmission(scene: Scene, n: number): Transmission {
  const table = lines(scene)
  const [about, head, allowed, body = ''] = table[n % table.length] ?? ['nothing', '', []]
  const raw = Buffer.from(head + body, 'latin1')
  const method = /^\s*([A-Z]+) /.exec(head)?.[1] ?? 'GET'
  return { about, request: { method, path: '', headers: [], raw }, allowed }
}

export const transmissionCount = (scene: Scene): number => lines(scene).length
