import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ParserTiming } from '../../../testing/harness/parser-timing.ts'
import { seed } from '../../../testing/harness/random.ts'
import { encode } from '../../../testing/peers/issuer.ts'
import { hasAmbiguousNames, readJwt } from './strict-jwt.ts'

const header = '{"alg":"EdDSA","kid":"1"}'
const payload = '{"iss":"https://mail.example.com","sub":"1"}'
const signature = Buffer.alloc(64, 7).toString('base64url')
const jwt = (head: string | Buffer, body: string | Buffer) => `${encode(head)}.${encode(body)}.${signature}`

describe('readJwt', () => {
  const accepted: Record<string, [header: string, payload: string]> = {
    'header and claims': [header, payload],
    'two empty objects': ['{}', '{}'],
    'whitespace around and inside': [` ${header}\n`, '\t{ "a" : [ 1 , 2 ] }\r\n'],
    'one name in two objects': [header, '{"a":{"a":1},"b":{"a":1},"c":[{"a":1},{"a":1}]}'],
    'a name that is also a value': [header, '{"a":"a","b":["a","a"]}'],
    'a string that looks like members': [header, '{"a":"\\"a\\":1,\\"a\\":2","b":"{\\"b\\":1}"}'],
    'letters beyond ASCII': [header, '{"name":"Ång 🦊 \\ud83e\\udd8a"}'],
    'an empty name': [header, '{"":1}'],
    'names that every object inherits': [header, '{"__proto__":{"a":1},"constructor":1,"toString":2}'],
  }
  for (const [what, [head, body]] of Object.entries(accepted)) {
    test(`reads ${what}`, () => {
      assert.deepEqual(readJwt(jwt(head, body)), { header: JSON.parse(head), payload: JSON.parse(body) })
    })
  }

  test('a claim named __proto__ is a claim, not a prototype', () => {
    const read = readJwt(jwt(header, '{"__proto__":{"iss":"evil"}}'))?.payload
    assert.equal(read?.['iss'], undefined)
    assert.equal(Object.getPrototypeOf(read), Object.prototype)
  })

  // V8's JSON.parse can mistake an escaped name for a name parsed earlier: nodejs/node#63785. An attacker's token, parsed
  // before its signature is verified, could then change the claims of the next one.
  test('an escaped name is never mistaken for a name in an earlier token', () => {
    readJwt(jwt(header, '{"iss":"a","\\\\u0":"1"}'))
    const read = readJwt(jwt(header, '{"iss":"a","\\u0073ub":"1"}'))
    assert.ok(read === undefined || read.payload['sub'] === '1', `read as ${JSON.stringify(read?.payload)}`)
  })

  test('accepts 8,192 characters and rejects 8,193', () => {
    // A multiple of four characters: the signature can have any length except one more than a multiple of four.
    const start = `${encode(header.padEnd(27))}.${encode(payload.padEnd(45))}.`
    assert.ok(readJwt(start + 'A'.repeat(8192 - start.length)))
    assert.equal(readJwt(start + 'A'.repeat(8193 - start.length)), undefined)
  })

  const [head, body] = [encode(header), encode(payload)]
  const refused: Record<string, string> = {
    nothing: '',
    'one segment': head,
    'two segments': `${head}.${body}`,
    'four segments': `${head}.${body}.${signature}.${signature}`,
    'a dot before the first segment': `.${head}.${body}.${signature}`,
    'an empty header': `.${body}.${signature}`,
    'an empty payload': `${head}..${signature}`,
    'an empty signature': `${head}.${body}.`,
    'a space': `${head}.${body}.${signature} `,
    'a trailing line feed': `${head}.${body}.${signature}\n`,
    padding: `${head}.${body}.${signature}==`,
    'characters of base64 instead of base64url': `${head}.${body}.${signature.slice(0, -2)}+A`,
    'letters beyond ASCII': `${head}.${body}.${signature.slice(0, -2)}éA`,
    'unused bits that are set': `${head}.${body}.AB`,
    'one character too many': `${head}.${body}.AAAAA`,
    'a header that is not JSON': jwt('alg', payload),
    'a header that is a list': jwt(`[${header}]`, payload),
    'a payload that is a list': jwt(header, `[${payload}]`),
    'a payload that is a number': jwt(header, '1'),
    'a payload that is a string': jwt(header, '"a"'),
    'a payload that is null': jwt(header, 'null'),
    'a payload with trailing data': jwt(header, `${payload}x`),
    'a trailing comma': jwt(header, '{"a":1,}'),
    'a comment': jwt(header, '{"a":1/**/}'),
    'names without quotes': jwt(header, '{a:1}'),
    'a line feed in a string': jwt(header, '{"a":"\n"}'),
    'an unknown escape': jwt(header, '{"a":"\\x41"}'),
    'invalid UTF-8': jwt(header, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])),
    'overlong UTF-8': jwt(header, Buffer.from('{"\xc1\xa1":1}', 'latin1')),
    'an unpaired surrogate in UTF-8': jwt(header, Buffer.from('{"\xed\xa0\x80":1}', 'latin1')),
    'a byte order mark before the header': jwt(`\ufeff${header}`, payload),
    'a byte order mark before the payload': jwt(header, `\ufeff${payload}`),
    'a name twice in the header': jwt('{"alg":"none","alg":"EdDSA"}', payload),
    'a name twice in the payload': jwt(header, '{"sub":"1","sub":"2"}'),
  }
  for (const [what, token] of Object.entries(refused)) {
    test(`rejects ${what}`, () => assert.equal(readJwt(token), undefined))
  }

  for (const name of ['jku', 'jwk', 'x5u', 'x5c', 'crit', 'b64', 'zip', 'enc']) {
    test(`rejects the header "${name}", regardless of its value`, () => {
      for (const value of [null, false, '', [], {}]) {
        assert.equal(readJwt(jwt(JSON.stringify({ alg: 'EdDSA', [name]: value }), payload)), undefined)
      }
      assert.ok(readJwt(jwt(header, JSON.stringify({ [name]: 1 }))), 'allowed as a claim')
    })
  }
})

describe('hasAmbiguousNames', () => {
  const cases: [json: string, doubtful: boolean][] = [
    ['{}', false],
    ['1', false],
    ['"a:a"', false],
    ['[]', false],
    ['{"a":1,"b":1}', false],
    ['{"a":1,"A":1}', false],
    ['{"a":{"a":{"a":1}}}', false],
    ['[{"a":1},{"a":1}]', false],
    ['{"a":[{"a":1}],"b":{"a":1}}', false],
    ['{"a":"a","b":"a"}', false],
    ['{"a":":","b":"{","c":"\\"","d":"\\\\"}', false],
    ['{"\\\\":1,"\\"":2}', true],
    ['{"a":"\\u0061"}', false],
    ['{"\\u0061":1}', true],
    ['{"\u00e9":1,"e\u0301":1}', false],
    ['{"a":1,"a":1}', true],
    ['{"a":1,"b":{},"a":1}', true],
    ['{"a":{"b":[1,{"c":2}]},"a":1}', true],
    ['{"b":[{"a":1,"a":2}]}', true],
    ['{"b":{"a":1,"a":2}}', true],
    ['{"x":{"y":1},"z":0,"x":1}', true],
    ['{"sub":1,"\\u0073ub":1}', true],
    ['{"\\u0073ub":1,"\\u0073\\u0075b":1}', true],
    ['{"\\/":1,"/":1}', true],
    ['{"https:\\/\\/example.com\\/roles":1}', false],
    ['{"\\\\/":1}', true],
    ['{"\\u00E9":1,"\\u00e9":1}', true],
    ['{"\\ud83e\\udd8a":1,"🦊":1}', true],
    ['{"":1,"":1}', true],
    ['{"\\"":1,"\\u0022":1}', true],
    ['{"__proto__":1,"__proto__":1}', true],
    ['{"a" \t\r\n : 1, "a"\n:\n2}', true],
    ['{"a":"b",":c\\u0073":1}', true],
  ]
  for (const [json, doubtful] of cases) {
    test(`finds ${doubtful ? 'an' : 'no'} ambiguous name in ${JSON.stringify(json)}`, () => {
      assert.equal(hasAmbiguousNames(json), doubtful)
      assert.equal(losesMembers(json) || escapesNames(json), doubtful, 'the second implementation agrees')
    })
  }
})

describe('hostile input', () => {
  const inputs = 20_000

  test('20,000 random mutations do not throw, and accepted tokens are canonical', (t) => {
    t.diagnostic(`POSTERN_TEST_SEED=${seed}`)
    const random = new Random(seed)
    const quickness = new ParserTiming()
    let read = 0
    let doubtful = 0
    for (let index = 0; index < inputs; index++) {
      const token = random.token()
      const parts = quickness.of(token, () => readJwt(token))
      const segments = token.split('.').slice(0, 2)
      const texts = segments.map((segment) => Buffer.from(segment, 'base64url').toString())
      if (parts) {
        read++
        assert.deepEqual(texts.map(encode), segments)
      }
      for (const text of texts.filter(isJson)) {
        const expected = losesMembers(text) || escapesNames(text)
        assert.equal(hasAmbiguousNames(text), expected, text)
        if (expected) assert.equal(parts, undefined, text)
        if (expected) doubtful++
      }
    }
    t.diagnostic(`${read} read, ${doubtful} texts with ambiguous names, ${quickness}`)
    assert.ok(
      read > inputs / 100 && doubtful > inputs / 100,
      'the mutations produce valid and ambiguous tokens',
    )
  })

  const bombs: Record<string, string> = {
    'nested arrays': `{"a":${'['.repeat(3_000)}${']'.repeat(3_000)}}`,
    'unterminated arrays': '['.repeat(6_000),
    'nested objects': `${'{"a":'.repeat(950)}1${'}'.repeat(950)}`,
    'a string of backslashes': `{"a":"${'\\\\'.repeat(2_900)}"}`,
    'an unterminated string': `{"a":"${'\\"'.repeat(2_900)}`,
    quotes: '"'.repeat(6_000),
    'many names': JSON.stringify(Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`n${n}`, 1]))),
    'a number with many digits': `{"a":${'9'.repeat(5_800)}}`,
  }
  for (const [what, json] of Object.entries(bombs)) {
    test(`${isJson(json) ? 'reads' : 'rejects'} ${what}`, () => {
      const token = jwt(header, json)
      assert.ok(token.length <= 8192, 'a longer token would not be parsed')
      const parts = new ParserTiming().of(token, () => readJwt(token))
      assert.equal(parts !== undefined, isJson(json))
    })
  }
})

/**
 * An independent implementation: JSON.parse returns one member per name, so a duplicate leaves fewer members than colons.
 * Escapes in the strings are resolved first, because of https://github.com/nodejs/node/issues/63785.
 */
function losesMembers(json: string): boolean {
  const respelled = json.replaceAll(
    /"(\\.|[^\\"])*"/g,
    (text) => `"_${encode(JSON.stringify(JSON.parse(text)))}"`,
  )
  const members = (value: unknown): number => {
    if (typeof value !== 'object' || value === null) return 0
    const own = Array.isArray(value) ? 0 : Object.keys(value).length
    return Object.values(value).reduce((sum, inner) => sum + members(inner), own)
  }
  return members(JSON.parse(respelled)) < respelled.split(':').length - 1
}

const escapesNames = (json: string): boolean =>
  // Every string is matched, so that no match begins at a closing quote.
  [...json.matchAll(/("(?:\\.|[^\\"])*")(\s*:)?/g)].some(
    ([, text = '', colon]) => colon && /\\[^/]/.test(text),
  )

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Generates hostile tokens from a seed: mulberry32, and mutations on three levels (text, JSON, bytes). */
class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  token(): string {
    const mutated = (text: string) => this.#some(text, 3)
    const ways = [
      () => mutated(jwt(header, payload)),
      () => jwt(header, mutated(payload)),
      () => jwt(mutated(header), payload),
      () => jwt(header, this.#object(3)),
      () => jwt(this.#object(1), mutated(this.#object(3))),
      () => jwt(header, this.#bytes(this.#below(200))),
      () => `${encode(this.#bytes(40))}.${encode(this.#bytes(40))}.${encode(this.#bytes(64))}`,
      () => this.#bytes(this.#below(8_300)).toString('latin1'),
    ]
    return this.#pick(ways)()
  }

  #some(text: string, most: number): string {
    let result = text
    for (let times = this.#below(most + 1); times > 0; times--) result = this.#mutate(result)
    return result
  }

  #mutate(text: string): string {
    const [at, end] = [this.#below(text.length + 1), this.#below(text.length + 1)].sort((a, b) => a - b) as [
      number,
      number,
    ]
    const pieces = [
      '.',
      '"',
      '\\',
      '\\u0073',
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '=',
      '\0',
      '\ud800',
      'é',
      '"sub":1,',
    ]
    return this.#pick([
      () => text.slice(0, at),
      () => text.slice(0, at) + text.slice(end),
      () => text.slice(0, end) + text.slice(at),
      () => text.slice(0, at) + this.#pick(pieces) + text.slice(at),
      () => text.slice(0, at) + String.fromCharCode(this.#below(256)) + text.slice(at + 1),
      () => text.slice(at) + text.slice(0, at),
    ])()
  }

  #object(depth: number): string {
    const name = () =>
      this.#pick(['a', 'b', 'sub', '\\u0061', '\\u0073ub', '__proto__', '', '\\"', '\\\\', ':'])
    const members = Array.from({ length: this.#below(5) }, () => `"${name()}":${this.#value(depth - 1)}`)
    return `{${members.join(this.#pick([',', ' , ']))}}`
  }

  #value(depth: number): string {
    const leaves = [() => String(this.#below(1000)), () => '"a"', () => 'null', () => '"\\",\\"a\\":{"']
    const list = () => `[${this.#value(depth - 1)},${this.#value(depth - 1)}]`
    return this.#pick(depth > 0 ? [...leaves, list, () => this.#object(depth)] : leaves)()
  }

  #bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.#below(256)))
  }

  #pick<T>(values: T[]): T {
    return values[this.#below(values.length)] as T
  }

  #below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit)
  }
}
