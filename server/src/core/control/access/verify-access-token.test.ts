import assert from 'node:assert/strict'
import { constants, generateKeyPairSync, sign } from 'node:crypto'
import { describe, test } from 'node:test'
import { makeForgedTokenContext, makeSession } from '../../../testing/fixtures/forged-token-context.ts'
import {
  bearers,
  each,
  type ForgedTokenContext,
  type Forgery,
  forgeries,
  inSeconds,
  tokenForge,
} from '../../../testing/fixtures/token-forgeries.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { recordStatements } from '../../../testing/harness/statements.ts'
import {
  compact,
  encode,
  flipAt,
  KeyClock,
  type Signer,
  signers,
  startIssuer,
  withBytes,
} from '../../../testing/peers/issuer.ts'
import { linkAdministrator } from './administrators.ts'

/**
 * Authentication on the admin plane, over HTTP. `/v1/admin/anything` does not exist, so an administrator gets 404 and
 * every other caller 401 or 403.
 */
const external = await startIssuer()
const stranger = await startIssuer()
const database = await testDatabase()
const api = await startApi(database, { POSTERN_OIDC_ISSUERS: JSON.stringify([external.configuration]) })

const admin = await api.makeAdmin()
const subject = 'ada-7f3c'
const { auth, db } = api.context
await linkAdministrator(
  { auth, adminDb: db.admin, identityDb: db.identity },
  admin.email,
  external.issuer,
  subject,
)

const scene = await makeForgedTokenContext(api, database, admin, { external, stranger })
const { own } = scene

const { genuine } = tokenForge(scene)
const kinds = [...forgeries(scene), ...outsideForgeries(scene)]

const authenticate = (authorization?: string, { url } = api): Promise<Response> =>
  fetch(`${url}/v1/admin/anything`, authorization === undefined ? {} : { headers: { authorization } })

async function assertRefused(response: Response, status: number, error: string): Promise<void> {
  const body = (await response.json()) as Record<string, unknown>
  assert.deepEqual({ status: response.status, error: body['error'] }, { status, error })
  assert.deepEqual(Object.keys(body), ['error', 'message'])
  assert.match(String(body['message']), /^[A-Z].+\.$/)
  assert.equal(response.headers.get('www-authenticate'), status === 401 ? 'Bearer' : null)
}

/** The unmodified tokens are accepted, so each forged token is rejected only because of its own defect. */
async function assertGenuineTokensPass(): Promise<void> {
  const tokens = {
    'issued by the service': await api.tokenOf(admin.email),
    'made here': genuine(),
    'signed in the test, with a session': genuine({ sid: String(scene.sessions.own) }),
    'of the external issuer in EdDSA': await external.sign({ sub: subject }),
    'of the external issuer in ES256': await external.sign({ sub: subject }, { algorithm: 'ES256' }),
    'of the external issuer in RS256': await external.sign({ sub: subject }, { algorithm: 'RS256' }),
  }
  for (const [what, token] of Object.entries(tokens)) {
    const response = await authenticate(`Bearer ${token}`)
    assert.equal(response.status, 404, `a token ${what}`)
    assert.equal(((await response.json()) as { error: string }).error, 'not_found')
  }
}

describe('forged and misused tokens', () => {
  test('genuine tokens pass before the forgeries', assertGenuineTokensPass)

  for (const { kind, authorization, error } of kinds) {
    test(`${kind} is rejected`, async () => {
      await assertRefused(await authenticate(await authorization()), 401, error)
    })
  }

  test('every prefix of a genuine token is rejected', async () => {
    const token = genuine()
    const lengths = Array.from({ length: token.length - 1 }, (_, index) => index + 1)
    const statuses = await Promise.all(
      lengths.map(async (n) => (await authenticate(`Bearer ${token.slice(0, n)}`)).status),
    )
    assert.deepEqual(new Set(statuses), new Set([401]))
  })

  test('a genuine token with a bit flipped in any of its bytes is rejected', async () => {
    const token = genuine()
    const flipped = token
      .split('.')
      .flatMap((segment, index) =>
        Array.from({ length: Buffer.from(segment, 'base64url').length }, (_, at) =>
          withBytes(token, index, (bytes) => flipAt(bytes, at)),
        ),
      )
    const statuses = await Promise.all(
      flipped.map(async (forged) => (await authenticate(`Bearer ${forged}`)).status),
    )
    assert.ok(flipped.length > 200)
    assert.deepEqual(new Set(statuses), new Set([401]))
  })

  test('a genuine token in the query, in a form or in a cookie is not accepted', async () => {
    const address = `${api.url}/v1/admin/anything`
    await assertRefused(await fetch(`${address}?access_token=${genuine()}`), 401, 'unauthenticated')
    const form = new URLSearchParams({ access_token: genuine() })
    await assertRefused(await fetch(address, { method: 'POST', body: form }), 401, 'unauthenticated')
    const cookie = `access_token=${genuine()}; postern.session_token=${scene.sessionCookie}`
    await assertRefused(await fetch(address, { headers: { cookie } }), 401, 'unauthenticated')
  })

  test('genuine tokens pass after the forgeries', assertGenuineTokensPass)

  test('no key is fetched from an address in a token', () => {
    assert.equal(stranger.fetches, 0)
  })

  test('no forgery causes a server error or appears in the log', () => {
    const failures = api.logLines.filter((line) => (JSON.parse(line) as { level: unknown }).level !== 'info')
    assert.deepEqual(failures, [])
    assert.ok(!api.logLines.some((line) => line.includes('eyJ')), 'a token is in the log')
  })

  test('there are at least forty different kinds of forgery', (t) => {
    assert.equal(new Set(kinds.map(({ kind }) => kind)).size, kinds.length)
    assert.ok(kinds.length >= 40)
    t.diagnostic(`${kinds.length} kinds of forged and misused tokens`)
  })
})

describe('the state of the user in the database', () => {
  const set = (assignment: string, id: number) =>
    database.query(`update control.users set ${assignment} where id = $1`, [id])

  test('a user without the admin role is rejected with admin_required', async () => {
    const user = await api.makeAdmin()
    await set("role = 'user'", user.userId)
    const authorization = `Bearer ${genuine({ sub: String(user.userId) })}`
    await assertRefused(await authenticate(authorization), 403, 'admin_required')
  })

  test('a role claimed by the token is ignored', async () => {
    const user = await api.makeAdmin()
    await set("role = 'user'", user.userId)
    const claims = {
      sub: String(user.userId),
      role: 'admin',
      roles: ['admin'],
      scope: 'admin',
      is_active: true,
    }
    await assertRefused(await authenticate(`Bearer ${genuine(claims)}`), 403, 'admin_required')
  })

  test('a demoted administrator is rejected on the next request, a promoted one is accepted again', async () => {
    const { userId, email } = await api.makeAdmin()
    const authorization = `Bearer ${await api.tokenOf(email)}`
    assert.equal((await authenticate(authorization)).status, 404)
    await set("role = 'user'", userId)
    await assertRefused(await authenticate(authorization), 403, 'admin_required')
    await set("role = 'admin'", userId)
    assert.equal((await authenticate(authorization)).status, 404)
  })

  test('rights claimed by the token are ignored', async () => {
    const user = await api.makeAdmin()
    await set("rights = 'auditor'", user.userId)
    const authorization = `Bearer ${genuine({ sub: String(user.userId), rights: 'full' })}`
    const response = await fetch(`${api.url}/v1/admin/plans`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: '{}',
    })
    await assertRefused(response, 403, 'insufficient_rights')
  })

  test('a disabled administrator is rejected on the next request, an enabled one is accepted again', async () => {
    const { userId, email } = await api.makeAdmin()
    const authorization = `Bearer ${await api.tokenOf(email)}`
    assert.equal((await authenticate(authorization)).status, 404)
    await set('is_active = false', userId)
    await assertRefused(await authenticate(authorization), 401, 'unauthenticated')
    await set('is_active = true', userId)
    assert.equal((await authenticate(authorization)).status, 404)
  })

  test('a new generation invalidates every earlier token', async () => {
    const { userId, email } = await api.makeAdmin()
    const before = `Bearer ${await api.tokenOf(email)}`
    assert.equal((await authenticate(before)).status, 404)
    await set('token_generation = token_generation + 1', userId)
    await assertRefused(await authenticate(before), 401, 'unauthenticated')
    assert.equal((await authenticate(`Bearer ${await api.tokenOf(email)}`)).status, 404)
  })

  test('a token is invalid after its session was revoked', async () => {
    const { userId } = await api.makeAdmin()
    const sid = await makeSession(database, userId, '1 hour')
    const authorization = `Bearer ${genuine({ sub: String(userId), sid: String(sid) })}`
    assert.equal((await authenticate(authorization)).status, 404)
    await database.query('delete from control.sessions where id = $1', [sid])
    await assertRefused(await authenticate(authorization), 401, 'unauthenticated')
  })
})

describe('project API keys', () => {
  const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'.slice(0, 49)
  const shapes = [
    `pk_live_${letters}`,
    `pk_test_${letters}`,
    'pk_live_made-up',
    'pk_test_',
    'pk_',
    'PK_LIVE_x',
    'Pk_x',
  ]

  test('every key is rejected because of its format, with the same response and without a query', async (t) => {
    const statements = recordStatements(t)
    const bodies = new Set<string>()
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      for (const key of shapes) {
        const response = await authenticate(`${scheme} ${key}`)
        await assertRefused(response.clone(), 403, 'api_key_not_allowed')
        bodies.add(await response.text())
      }
    }
    assert.equal(bodies.size, 1)
    assert.equal(statements.count, 0)

    await authenticate(`Bearer ${genuine()}`)
    assert.ok(statements.count > 0, 'the counter counts')
  })
})

describe('invented key ids', () => {
  test('cause at most one query per second for signing keys, and none for users', async (t) => {
    const clock = new KeyClock()
    const timed = await startApi(database, {}, { keyTiming: clock })
    const statements = recordStatements(t)
    const flood = async () => {
      for (let index = 0; index < 30; index++) {
        const response = await authenticate(`Bearer ${genuine({}, { kid: `made-up-${index}` })}`, timed)
        await assertRefused(response, 401, 'unauthenticated')
      }
    }
    await flood()
    assert.equal(statements.about('signing_keys'), 1)
    clock.advance(1_001)
    await flood()
    assert.equal(statements.about('signing_keys'), 2)
    assert.equal(statements.about('users'), 0)

    await authenticate(`Bearer ${genuine()}`, timed)
    assert.equal(statements.about('users'), 1, 'the counter counts')
  })
})

describe('the scheme', () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
    test(`is accepted as ${scheme}`, async () => {
      assert.equal((await authenticate(`${scheme} ${genuine()}`)).status, 404)
    })
  }
})

/** The external issuer's tokens for the user linked to `subject`, each with one defect. */
function outsideForgeries(scene: ForgedTokenContext): Forgery[] {
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const sealing = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  external.publish({ ...weak.publicKey.export({ format: 'jwk' }), kid: 'weak' })
  external.publish({ ...sealing.publicKey.export({ format: 'jwk' }), kid: 'sealing', use: 'enc' })
  external.publish({ kty: 'oct', kid: 'shared', k: encode('a shared secret') })

  const { ed25519, es256, rs256, hmac } = signers
  const [ed, ec, rsa] = [external.key('EdDSA'), external.key('ES256'), external.key('RS256')]
  const rsaPem = rsa.publicKey.export({ format: 'pem', type: 'spki' })
  const pss: Signer = (input) =>
    sign('sha256', Buffer.from(input), {
      key: rsa.privateKey,
      padding: constants.RSA_PKCS1_PSS_PADDING,
      saltLength: 32,
    })
  const der: Signer = (input) => sign('sha256', Buffer.from(input), ec.privateKey)
  const claims = () => ({
    iss: external.issuer,
    aud: external.audience,
    sub: subject,
    iat: inSeconds(0),
    exp: inSeconds(300),
  })
  const signed = (alg: string, kid: string, signer: Signer) => () => compact({ alg, kid }, claims(), signer)
  const ours = () => tokenForge(scene).claims()
  const ourHeader = { typ: 'at+jwt', kid: own.kid }
  const changes: Record<string, Record<string, unknown>> = {
    'without an expiry': { exp: undefined },
    'without iat': { iat: undefined },
    'issued in the future': { iat: inSeconds(3600) },
    'not valid yet': { nbf: inSeconds(3600) },
    'for another audience, as an ID token is': { aud: 'another-client', nonce: 'n' },
    'without an audience': { aud: undefined },
    'for the internal audience': { aud: own.audience },
    'without a subject': { sub: undefined },
    'of a user who is not linked': { sub: 'somebody-else' },
    'of the linked subject in upper case': { sub: subject.toUpperCase() },
    "with the administrator's id as subject": { sub: String(admin.userId) },
    "with the administrator's address as subject": { sub: admin.email, email: admin.email },
    'with the claims of an internal token': ours(),
    'that names an issuer that is not configured': { iss: stranger.issuer },
    'with a trailing slash after its issuer': { iss: `${external.issuer}/` },
  }
  return [
    ...bearers(each('an external token', changes, (change) => external.sign({ sub: subject, ...change }))),
    ...bearers({
      'a token of an issuer that is not configured': () => stranger.sign({ sub: subject }),
      "an unknown issuer's token that names the external issuer": () => stranger.sign(claims()),
      "an unknown issuer's token that names the internal issuer": () =>
        stranger.sign(ours(), { header: ourHeader }),
      'an external token that names the internal issuer and key id': () =>
        external.sign(ours(), { header: ourHeader }),
      "an external user's token signed with the internal key": signed('EdDSA', own.kid, ed25519(own.key)),
      "an external user's token signed with the internal key under the external key id": signed(
        'EdDSA',
        ed.kid,
        ed25519(own.key),
      ),
      'an external token without a signature': () => `${encode({ alg: 'none' })}.${encode(claims())}.`,
      'an external token in HS256 with the RSA key as PEM': signed('HS256', rsa.kid, hmac(rsaPem)),
      'an external token in HS256 with a shared key': signed('HS256', 'shared', hmac('a shared secret')),
      'an external token signed with an RSA key of 1,024 bits': signed(
        'RS256',
        'weak',
        rs256(weak.privateKey),
      ),
      'an external token signed with an encryption key': signed(
        'ES256',
        'sealing',
        es256(sealing.privateKey),
      ),
      'an external token in ES256 under the id of an RSA key': signed('ES256', rsa.kid, es256(ec.privateKey)),
      'an external token in RS256 under the id of an EC key': signed('RS256', ec.kid, rs256(rsa.privateKey)),
      'an external token in PS256, which is not supported': signed('PS256', rsa.kid, pss),
      'an external token in RS256 with a PSS signature': signed('RS256', rsa.kid, pss),
      'an external token whose ECDSA signature is zeros': signed('ES256', ec.kid, () => Buffer.alloc(64)),
      'an external token whose ECDSA signature is in DER': signed('ES256', ec.kid, der),
      'an external token whose RSA signature is zeros': signed('RS256', rsa.kid, () => Buffer.alloc(256)),
    }),
    ...bearers(
      { 'an external token that has expired': () => external.sign({ sub: subject, exp: inSeconds(-1) }) },
      'token_expired',
    ),
  ]
}
