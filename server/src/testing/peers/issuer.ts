import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type JWK, type JWTPayload, SignJWT } from 'jose'
import type { KeyTiming } from '../../core/control/access/issuer-keys.ts'
import { cleanUp } from '../harness/cleanup.ts'
import { patienceMs } from '../harness/waiting.ts'

/**
 * An external token issuer: a real HTTP server with a key set. Tests control its keys and faults. All issuers use the
 * same key ids (`EdDSA-1`, …), so that a key id does not identify an issuer.
 */
export interface TestIssuer {
  issuer: string
  audience: string
  /** The issuer's entry in POSTERN_OIDC_ISSUERS. */
  configuration: { issuer: string; audience: string; jwks_url: string }
  /** The number of requests for its key set. */
  fetches: number
  health: IssuerHealth
  key(algorithm: Algorithm): IssuerKey
  /** Adds a key to the published set, valid or not. */
  publish(jwk: JWK): void
  /** Replaces all published keys. */
  rotate(): void
  /** Stops the server. */
  stop(): Promise<void>
  /** Signs a token for its audience, valid for an hour. A claim or header that is `undefined` is omitted. */
  sign(
    claims: JWTPayload,
    options?: { algorithm?: Algorithm; header?: Record<string, unknown> },
  ): Promise<string>
}

export interface IssuerKey {
  kid: string
  privateKey: KeyObject
  publicKey: KeyObject
}

export type Algorithm = 'EdDSA' | 'ES256' | 'RS256'
export type IssuerHealth =
  | 'well'
  | 'fails'
  | 'hangs'
  | 'stalls'
  | 'talks nonsense'
  | 'serves no set'
  | 'serves no keys'
  | 'redirects'

const lifetimeSeconds = 3600

export async function startIssuer(): Promise<TestIssuer> {
  let round = 1
  let keys = newKeys(round)
  let extras: JWK[] = []

  const answers: Record<IssuerHealth, (response: ServerResponse) => void> = {
    well: (response) => response.end(JSON.stringify({ keys: [...published(keys), ...extras] })),
    fails: (response) => response.writeHead(500).end('{"keys":[]}'),
    hangs: () => {},
    stalls: (response) => response.write('{"keys":['),
    'talks nonsense': (response) => response.end('<!doctype html><title>Sign in</title>'),
    'serves no set': (response) => response.end('{"keys":7}'),
    'serves no keys': (response) => response.end('{"keys":[[]]}'),
    redirects: (response) => response.writeHead(302, { location: '/moved.json' }).end(),
  }
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json')
    if (request.url === '/moved.json') return answers.well(response)
    if (request.url !== '/jwks.json') return response.writeHead(404).end()
    issuer.fetches++
    return answers[issuer.health](response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stop = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  cleanUp(stop)

  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const audience = 'https://mail.example.com/v1'
  const issuer: TestIssuer = {
    issuer: url,
    audience,
    configuration: { issuer: url, audience, jwks_url: `${url}/jwks.json` },
    fetches: 0,
    health: 'well',
    key: (algorithm) => keys[algorithm],
    publish: (jwk) => void extras.push(jwk),
    rotate() {
      keys = newKeys(++round)
      extras = []
    },
    stop,
    sign(claims, { algorithm = 'EdDSA', header = {} } = {}) {
      const { kid, privateKey } = keys[algorithm]
      const iat = Math.floor(Date.now() / 1000)
      return new SignJWT({ iss: url, aud: audience, iat, exp: iat + lifetimeSeconds, ...claims })
        .setProtectedHeader({ alg: algorithm, kid, ...header })
        .sign(privateKey)
    },
  }
  return issuer
}

function newKeys(round: number): Record<Algorithm, IssuerKey> {
  return {
    EdDSA: { kid: `EdDSA-${round}`, ...generateKeyPairSync('ed25519') },
    ES256: { kid: `ES256-${round}`, ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) },
    RS256: { kid: `RS256-${round}`, ...generateKeyPairSync('rsa', { modulusLength: 2048 }) },
  }
}

// Without `alg`, as many issuers publish them: the verifier must restrict each key to one algorithm.
const published = (keys: Record<Algorithm, IssuerKey>): JWK[] =>
  Object.values(keys).map(({ kid, publicKey }) => ({
    ...publicKey.export({ format: 'jwk' }),
    kid,
    use: 'sig',
  }))

/** Keys expire only when a test advances this clock, and a key fetch times out only if a test requests it. */
export class KeyClock implements KeyTiming {
  #nowMs = 0
  fetchTimeoutMs = patienceMs

  readonly nowMs = (): number => this.#nowMs

  advance(ms: number): void {
    this.#nowMs += ms
  }
}

/** A segment of a hand-made token: an object to encode as JSON, or literal text or bytes. */
export type Part = Record<string, unknown> | string | Buffer
export type Signer = (input: string) => Buffer

/** Assembles a token from its parts, for tokens that no library would sign. */
export function compact(header: Part, payload: Part, signer: Signer): string {
  const input = `${encode(header)}.${encode(payload)}`
  return `${input}.${signer(input).toString('base64url')}`
}

export const encode = (part: Part): string =>
  (Buffer.isBuffer(part)
    ? part
    : Buffer.from(typeof part === 'string' ? part : JSON.stringify(part))
  ).toString('base64url')

export const signers = {
  ed25519:
    (key: KeyObject): Signer =>
    (input) =>
      sign(null, Buffer.from(input), key),
  // RFC 7518 §3.4: r and s concatenated, not DER.
  es256:
    (key: KeyObject): Signer =>
    (input) =>
      sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }),
  rs256:
    (key: KeyObject): Signer =>
    (input) =>
      sign('sha256', Buffer.from(input), key),
  hmac:
    (secret: string | Buffer): Signer =>
    (input) =>
      createHmac('sha256', secret).update(input).digest(),
}

/** Changes the bytes of one segment. */
export function withBytes(token: string, index: number, change: (bytes: Buffer) => Buffer): string {
  return token
    .split('.')
    .map((segment, at) => (at === index ? encode(change(Buffer.from(segment, 'base64url'))) : segment))
    .join('.')
}

export function flipAt(bytes: Buffer, index: number): Buffer {
  const copy = Buffer.from(bytes)
  copy.writeUInt8(copy.readUInt8(index) ^ 1, index)
  return copy
}
