import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  compact,
  encode,
  flipAt,
  type Part,
  type Signer,
  signers,
  type TestIssuer,
  withBytes,
} from './issuer.ts'

/**
 * Every way to forge or misuse one of our own tokens that we know of: RFC 8725 §2, the CVEs of JWT
 * libraries, and what this service adds. A token said to be *genuine* is signed with the service's own key
 * and would open the door but for the one thing that its kind names.
 */
export interface Forgery {
  kind: string
  /** The value of the Authorization header; undefined: there is none. */
  authorization: () => string | undefined | Promise<string>
  error: 'unauthenticated' | 'token_expired'
}

export interface Scene {
  own: { issuer: string; audience: string; kid: string; key: KeyObject }
  /** An administrator, who is active and in generation 1. */
  userId: number
  sessions: { own: number; ofPasswordAlone: number; ofAnother: number; expired: number; ended: number }
  users: { disabled: number; deleted: number }
  sessionCookie: string
  /** A configured issuer, and one that is not. */
  outside: TestIssuer
  stranger: TestIssuer
}

type Fields = Record<string, unknown>
type Kinds = Record<string, () => string | Promise<string>>

const { ed25519, es256, rs256, hmac } = signers

const attacker = {
  ed: generateKeyPairSync('ed25519').privateKey,
  ec: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
}

export function forgeries(scene: Scene): Forgery[] {
  const forge = tokenForge(scene)
  return [
    { kind: 'no Authorization header', authorization: () => undefined, error: 'unauthenticated' },
    ...listed(schemes(forge)),
    ...[
      notTokens(forge, scene),
      algorithms(forge, scene),
      keys(forge, scene),
      headers(forge, scene),
      encodings(forge, scene),
      payloads(forge, scene),
      issuersAndAudiences(forge, scene),
      times(forge),
      subjects(forge, scene),
    ].flatMap((kinds) => bearers(kinds)),
    ...bearers(expired(forge), 'token_expired'),
  ]
}

export const bearers = (kinds: Kinds, error: Forgery['error'] = 'unauthenticated'): Forgery[] =>
  listed(kinds, error).map((forgery) => ({
    ...forgery,
    authorization: async () => `Bearer ${await forgery.authorization()}`,
  }))

const listed = (kinds: Kinds, error: Forgery['error'] = 'unauthenticated'): Forgery[] =>
  Object.entries(kinds).map(([kind, authorization]) => ({ kind, authorization, error }))

/** One kind for each value. */
export const each = <T>(
  what: string,
  values: Record<string, T>,
  make: (value: T) => string | Promise<string>,
): Kinds =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`${what} ${name}`, () => make(value)]))

type Forge = ReturnType<typeof tokenForge>

/** Tokens as the service makes them, with changes. A field that is `undefined` is left out. */
export function tokenForge({ own, userId }: Scene) {
  const header = (changes: Fields = {}): Fields => ({ alg: 'EdDSA', typ: 'at+jwt', kid: own.kid, ...changes })
  const claims = (changes: Fields = {}): Fields => {
    const iat = nowSeconds()
    const [iss, aud, sub] = [own.issuer, own.audience, String(userId)]
    return { iss, aud, sub, gen: 1, iat, exp: iat + 600, ...changes }
  }
  return {
    header,
    claims,
    genuine: (claimChanges: Fields = {}, headerChanges: Fields = {}) =>
      compact(header(headerChanges), claims(claimChanges), ed25519(own.key)),
    genuineParts: (headerPart: Part, payloadPart: Part) => compact(headerPart, payloadPart, ed25519(own.key)),
    byAttacker: (claimChanges: Fields = {}, headerChanges: Fields = {}) =>
      compact(header(headerChanges), claims(claimChanges), ed25519(attacker.ed)),
  }
}

const schemes = ({ genuine }: Forge): Kinds => ({
  'an empty Authorization header': () => '',
  'the scheme without a token': () => 'Bearer',
  'a genuine token without a scheme': () => genuine(),
  'a genuine token under the Basic scheme': () => `Basic ${genuine()}`,
  'a genuine token as a Basic password': () => `Basic ${btoa(`ada:${genuine()}`)}`,
  'a genuine token under the DPoP scheme': () => `DPoP ${genuine()}`,
  'a genuine token behind a colon': () => `Bearer: ${genuine()}`,
  'a genuine token as a parameter': () => `Bearer token="${genuine()}"`,
  'a genuine token in quotes': () => `Bearer "${genuine()}"`,
  'a genuine token behind a tab': () => `Bearer\t${genuine()}`,
  'two genuine tokens behind one scheme': () => `Bearer ${genuine()} ${genuine()}`,
  'two genuine credentials with a comma between them': () => `Bearer ${genuine()}, Bearer ${genuine()}`,
  'a genuine token behind a Basic credential': () => `Basic YTpi, Bearer ${genuine()}`,
  'whitespace inside of a genuine token': () => `Bearer ${genuine().replaceAll('.', '. ')}`,
  'a byte outside of ASCII behind a genuine token': () => `Bearer ${genuine()}\u00e9`,
})

function notTokens({ genuine, genuineParts, header, claims }: Forge, { sessionCookie }: Scene): Kinds {
  const [head = '', body = '', signature = ''] = genuine().split('.')
  const jwe = encode({ alg: 'dir', enc: 'A256GCM' })
  return {
    garbage: () => 'garbage',
    'the value of a live session cookie': () => sessionCookie,
    'a session cookie without its signature': () => sessionCookie.split('.')[0] ?? '',
    'three empty segments': () => '..',
    'the header alone': () => head,
    'header and payload without the last dot': () => `${head}.${body}`,
    'an empty header': () => `.${body}.${signature}`,
    'an empty payload': () => `${head}..${signature}`,
    'an empty signature': () => `${head}.${body}.`,
    'half of the header': () => `${head.slice(0, 20)}.${body}.${signature}`,
    'half of the payload': () => `${head}.${body.slice(0, 80)}.${signature}`,
    'half of the signature': () => `${head}.${body}.${signature.slice(0, 43)}`,
    'a signature one byte short': () => withBytes(genuine(), 2, (bytes) => bytes.subarray(0, -1)),
    'a signature with one byte more': () => withBytes(genuine(), 2, (bytes) => Buffer.concat([bytes], 65)),
    'a fourth segment': () => `${genuine()}.${signature}`,
    'a fourth segment that is empty': () => `${genuine()}.`,
    'the five parts of a JWE': () => `${jwe}..${body}.${body}.${signature}`,
    'the flattened JSON serialisation': () => JSON.stringify({ protected: head, payload: body, signature }),
    'the general JSON serialisation': () =>
      JSON.stringify({ payload: body, signatures: [{ protected: head, signature }] }),
    'a genuine token inside of a genuine token': () => genuineParts(header({ cty: 'JWT' }), genuine()),
    'a genuine token with a disclosure behind it': () => `${genuine()}~${encode('["salt","role","admin"]')}~`,
    'a genuine token of nine kilobytes': () => genuine({ padding: 'x'.repeat(6_600) }),
    'a genuine token of fifteen kilobytes': () => genuine({ padding: 'x'.repeat(11_000) }),
    'fifteen kilobytes of dots': () => '.'.repeat(15_000),
    'a flipped bit in the header': () => withBytes(genuine(), 0, flip('EdDSA')),
    'a flipped bit in the payload': () => withBytes(genuine(), 1, flip('"gen":1')),
    'a flipped bit at the start of the signature': () => withBytes(genuine(), 2, (bytes) => flipAt(bytes, 0)),
    'a flipped bit at the end of the signature': () => withBytes(genuine(), 2, (bytes) => flipAt(bytes, 63)),
    "other claims under a genuine token's signature": () =>
      `${head}.${encode(claims({ jti: 'x' }))}.${signature}`,
  }
}

function algorithms({ genuine, header, claims }: Forge, { own }: Scene): Kinds {
  const publicKey = createPublicKey(own.key)
  const jwk = publicKey.export({ format: 'jwk' })
  const relabelled = (alg: unknown, signer: Signer = ed25519(own.key)) =>
    compact(header({ alg }), claims(), signer)
  const names = { none: 'none', None: 'None', NONE: 'NONE', nOnE: 'nOnE' }
  const secrets = {
    "the public key's bytes": Buffer.from(jwk.x ?? '', 'base64url'),
    "the public key's x as it is written": jwk.x ?? '',
    'the public key as a JWK': JSON.stringify(jwk),
    'the public key as PEM': publicKey.export({ format: 'pem', type: 'spki' }),
    'the public key as DER': publicKey.export({ format: 'der', type: 'spki' }),
    'an empty key': '',
    "the key's id": own.kid,
  }
  const labels = { RS256: 'RS256', ES256: 'ES256', HS256: 'HS256', none: 'none', eddsa: 'eddsa' }
  return {
    ...each(
      'no signature and the algorithm',
      names,
      (alg) => `${encode(header({ alg }))}.${encode(claims())}.`,
    ),
    ...each('HS256 with', secrets, (secret) => relabelled('HS256', hmac(secret))),
    ...each('a genuine token relabelled', labels, relabelled),
    'a genuine token relabelled Ed25519, which is not on our list': () => relabelled('Ed25519'),
    'a genuine token with a list of algorithms': () => relabelled(['EdDSA']),
    'a genuine token with a number for an algorithm': () => relabelled(8),
    'a genuine token without an algorithm': () => genuine({}, { alg: undefined }),
    'ES256 by another key under the id of our key': () => relabelled('ES256', es256(attacker.ec)),
    'RS256 by another key under the id of our key': () => relabelled('RS256', rs256(attacker.rsa)),
    'an Ed25519 signature of zeros': () => relabelled('EdDSA', () => Buffer.alloc(64)),
    'an Ed25519 signature beyond the order of the group': () => withBytes(genuine(), 2, addGroupOrder),
  }
}

function keys({ genuine, byAttacker, header, claims }: Forge, { own: { kid } }: Scene): Kinds {
  const oddTypes = {
    'a number': Number(kid),
    'an object': { $ne: null },
    'a list': [kid],
    null: null,
    true: true,
  }
  const oddTexts = {
    unknown: '999999',
    empty: '',
    'a path': '../../../../../../dev/null',
    SQL: `${kid}' or '1'='1`,
    'padded with a zero': `0${kid}`,
    'four kilobytes long': 'k'.repeat(4_096),
    'the name of an inherited property': '__proto__',
  }
  const devNull = header({ alg: 'HS256', kid: '/dev/null' })
  return {
    'the right claims by another key under the id of our key': () => byAttacker(),
    'the right claims by the right key without a key id': () => genuine({}, { kid: undefined }),
    'the right claims by another key without a key id': () => byAttacker({}, { kid: undefined }),
    'the right claims by another key under an id of its own': () => byAttacker({}, { kid: 'another' }),
    'HS256 with an empty key under the key id /dev/null': () => compact(devNull, claims(), hmac('')),
    ...each('a genuine token whose key id is', { ...oddTypes, ...oddTexts }, (kid) => genuine({}, { kid })),
  }
}

function headers(forge: Forge, { own, stranger }: Scene): Kinds {
  const { genuine, genuineParts, byAttacker, header, claims } = forge
  const publicKey = createPublicKey(attacker.ed)
  const pointers: Record<string, Fields> = {
    jwk: { jwk: { ...publicKey.export({ format: 'jwk' }), kid: own.kid } },
    jku: { jku: stranger.configuration.jwks_url },
    x5u: { x5u: stranger.configuration.jwks_url },
    x5c: { x5c: [publicKey.export({ format: 'der', type: 'spki' }).toString('base64')] },
  }
  const extensions: Record<string, Fields> = {
    'an unknown critical extension': { crit: ['urn:example:x'], 'urn:example:x': true },
    'an empty list of critical extensions': { crit: [] },
    '"b64": false': { b64: false, crit: ['b64'] },
    '"b64": false that is not critical': { b64: false },
    '"zip"': { zip: 'DEF' },
    '"enc"': { enc: 'A256GCM' },
  }
  const types = { JWT: 'JWT', id_token: 'id_token', 'logout+jwt': 'logout+jwt', 'dpop+jwt': 'dpop+jwt' }
  const oddTypes = { missing: undefined, null: null, 'a list': ['at+jwt'], 'padded with a space': 'at+jwt ' }
  const json = JSON.stringify(header())
  return {
    ...each('another key, given by the token in', pointers, (changes) => byAttacker({}, changes)),
    ...each('a genuine token with', { ...pointers, ...extensions }, (changes) => genuine({}, changes)),
    ...each('a genuine token whose type is', { ...types, ...oddTypes }, (typ) => genuine({}, { typ })),
    'a genuine token with a list for a header': () => genuineParts(`[${json}]`, claims()),
    'a genuine token with two "alg"': () => genuineParts(json.replace('{', '{"alg":"none",'), claims()),
    'a genuine token with two "alg", one in escapes': () =>
      genuineParts(json.replace('{', '{"\\u0061lg":"EdDSA",'), claims()),
    'a genuine token with a byte order mark before its header': () => genuineParts(`\ufeff${json}`, claims()),
  }
}

function encodings({ genuine, header, claims }: Forge, { own }: Scene): Kinds {
  // One byte over a multiple of three, so that the last letter has unused bits and base64 would be padded.
  const respelled = (respell: (segment: string) => string) => {
    const json = JSON.stringify(claims({ jti: '>?'.repeat(8) }))
    const segment = encode(json.padEnd(Math.ceil(json.length / 3) * 3 + 1))
    const input = `${encode(header())}.${respell(segment)}`
    if (input.endsWith(segment)) throw new Error('nothing was spelled differently')
    return `${input}.${ed25519(own.key)(input).toString('base64url')}`
  }
  const otherBits = (segment: string) => segment.slice(0, -1) + neighbour(segment.at(-1) ?? '')
  const inBase64 = (segment: string) => segment.replaceAll('-', '+').replaceAll('_', '/')
  return {
    'padding behind the signature': () => `${genuine()}==`,
    'other unused bits in the last letter of the signature': () => otherBits(genuine()),
    'a genuine token with padding behind its payload': () => respelled((segment) => `${segment}==`),
    'a genuine token with other unused bits in its payload': () => respelled(otherBits),
    'a genuine token in base64 instead of base64url': () => respelled(inBase64),
    'a genuine token with a percent escape': () => genuine().replace('.', '%2E'),
  }
}

function payloads({ genuineParts, header, claims, byAttacker }: Forge, { own, userId }: Scene): Kinds {
  const json = () => JSON.stringify(claims())
  const { sub, gen, ...others } = claims()
  const inherited = JSON.stringify(others).replace('{', `{"__proto__":${JSON.stringify({ sub, gen })},`)
  const odd: Record<string, () => Part> = {
    'a list': () => `[${json()}]`,
    'a number': () => '1',
    'a string': () => '"sub"',
    null: () => 'null',
    'an empty object': () => '{}',
    'two objects': () => json().repeat(2),
    'an object with a comma too many': () => json().replace('}', ',}'),
    'an object and a comment': () => `${json()}//`,
    'an object behind a byte order mark': () => `\ufeff${json()}`,
    'an object in UTF-16': () => Buffer.from(json(), 'utf16le'),
    'invalid UTF-8': () => Buffer.from(json().replace('}', ',"x":"\u00c3("}'), 'latin1'),
    'an object that inherits its subject': () => inherited,
  }
  const doubles = {
    sub: `"sub":"${userId}"`,
    'sub, one in escapes': `"\\u0073ub":"${userId}"`,
    exp: `"exp":${nowSeconds() + 600}`,
    iss: `"iss":"${own.issuer}"`,
    'of a name deep inside of a claim': '"x":[{"y":{"a":1,"a":1}}]',
  }
  let deep: unknown = []
  for (let depth = 0; depth < 2_500; depth++) deep = [deep]
  return {
    ...each('a genuine token whose payload is', odd, (payload) => genuineParts(header(), payload())),
    ...each('a genuine token with two', doubles, (member) =>
      genuineParts(header(), json().replace('{', `{${member},`)),
    ),
    'claims nested 2,500 deep by another key': () => byAttacker({ deep }),
  }
}

function issuersAndAudiences({ genuine }: Forge, { own: { issuer, audience }, outside }: Scene): Kinds {
  const issuers = {
    another: 'https://evil.example',
    'ours with a slash behind it': `${issuer}/`,
    'ours in capitals': issuer.toUpperCase(),
    'ours with a digit more in the port': `${issuer}1`,
    'ours with a user name': issuer.replace('//', '//evil@'),
    'a list with ours': [issuer],
    'the outside issuer': outside.issuer,
  }
  const audiences = {
    another: 'https://evil.example/v1',
    'the origin alone': issuer,
    'ours with a slash behind it': `${audience}/`,
    'ours in capitals': audience.toUpperCase(),
    'a list of others': ['https://a.example', 'https://b.example'],
    'an empty list': [],
    'ours in a list in a list': [[audience]],
    'an object': { [audience]: true },
    "the outside issuer's": outside.audience,
  }
  const absent = { missing: undefined, null: null, empty: '', 'a number': 1 }
  return {
    ...each('a genuine token whose issuer is', { ...absent, ...issuers }, (iss) => genuine({ iss })),
    ...each('a genuine token whose audience is', { ...absent, ...audiences }, (aud) => genuine({ aud })),
  }
}

const expired = ({ genuine }: Forge): Kinds => ({
  'a genuine token that has expired': () => genuine({ iat: inSeconds(-601), exp: inSeconds(-1) }),
  'a genuine token that expires this second': () => genuine({ iat: inSeconds(-600), exp: inSeconds(0) }),
  'a genuine token that expired before 1970': () => genuine({ exp: -1 }),
})

function times({ genuine, genuineParts, byAttacker, header, claims }: Forge): Kinds {
  const infinite = (name: string) =>
    genuineParts(header(), JSON.stringify(claims({ [name]: 0 })).replace(`"${name}":0`, `"${name}":1e999`))
  return {
    'an expired token by another key': () => byAttacker({ iat: inSeconds(-601), exp: inSeconds(-1) }),
    'a genuine token without an end': () => genuine({ exp: undefined }),
    'a genuine token whose end is a string': () => genuine({ exp: String(inSeconds(600)) }),
    'a genuine token whose end is null': () => genuine({ exp: null }),
    'a genuine token whose end is in milliseconds': () => genuine({ exp: inSeconds(600) * 1000 }),
    'a genuine token whose end is infinite': () => infinite('exp'),
    'a genuine token for longer than ten minutes': () => genuine({ exp: inSeconds(602) }),
    'a genuine token that is an hour old': () => genuine({ iat: inSeconds(-3600), exp: inSeconds(60) }),
    'a genuine token not valid before later': () => genuine({ nbf: inSeconds(30) }),
    'a genuine token not valid before a string': () => genuine({ nbf: String(inSeconds(-30)) }),
    'a genuine token not valid before null': () => genuine({ nbf: null }),
    'a genuine token without a beginning': () => genuine({ iat: undefined }),
    'a genuine token from the future': () => genuine({ iat: inSeconds(3600), exp: inSeconds(4200) }),
    'a genuine token whose beginning is a string': () => genuine({ iat: String(inSeconds(0)) }),
    'a genuine token from before 1970': () => genuine({ iat: -1 }),
    'a genuine token whose beginning is infinite': () => infinite('iat'),
  }
}

function subjects({ genuine }: Forge, { userId, sessions, users }: Scene): Kinds {
  const oddNumbers = {
    zero: '0',
    negative: `-${userId}`,
    'in e-notation': `${userId}e0`,
    'a fraction': `${userId}.0`,
  }
  const nobody = {
    'in hexadecimal': `0x${userId.toString(16)}`,
    'padded with a zero': `0${userId}`,
    'behind a space': ` ${userId}`,
    'before a line feed': `${userId}\n`,
    'before a NUL': `${userId}\0`,
    SQL: `${userId} or 1=1`,
    'beyond 2^53': '9007199254740993',
    '2^63': '9223372036854775808',
    'a user who does not exist': '999999999',
    'a user who is disabled': String(users.disabled),
    'a user who was deleted': String(users.deleted),
  }
  const absent = { missing: undefined, null: null, empty: '' }
  const oddTypes = { 'a number': userId, 'a list': [String(userId)], true: true }
  const generations = {
    zero: 0,
    negative: -1,
    'of the future': 2,
    'a fraction': 1.5,
    'a string': '1',
    'a list': [1],
  }
  const tooLarge = { '2^31': 2 ** 31, '2^32 + 1': 2 ** 32 + 1 }
  const noSession = {
    'of a password alone': String(sessions.ofPasswordAlone),
    "another user's": String(sessions.ofAnother),
    expired: String(sessions.expired),
    ended: String(sessions.ended),
    'of nothing': '999999999',
    malformed: 'abc',
    '2^63': '9223372036854775808',
    'a number': sessions.own,
    'a list': [String(sessions.own)],
  }
  return {
    ...each('a genuine token whose subject is', { ...absent, ...oddTypes, ...oddNumbers, ...nobody }, (sub) =>
      genuine({ sub }),
    ),
    ...each('a genuine token whose generation is', { ...absent, ...generations, ...tooLarge }, (gen) =>
      genuine({ gen }),
    ),
    ...each('a genuine token whose session is', { null: null, empty: '', ...noSession }, (sid) =>
      genuine({ sid }),
    ),
  }
}

export const inSeconds = (seconds: number): number => nowSeconds() + seconds
const nowSeconds = (): number => Math.floor(Date.now() / 1000)

/** Flips the lowest bit of the last letter of a text. */
const flip = (text: string) => (bytes: Buffer) => flipAt(bytes, bytes.indexOf(text) + text.length - 1)

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const neighbour = (letter: string): string => letters.charAt(letters.indexOf(letter) ^ 1)

// RFC 8032 §5.1.7: S must be below the order of the group, or every signature would have a twin.
const groupOrder = 2n ** 252n + 27742317777372353535851937790883648493n

function addGroupOrder(signature: Buffer): Buffer {
  const s = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + groupOrder
  const twin = Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse()
  return Buffer.concat([signature.subarray(0, 32), twin])
}
