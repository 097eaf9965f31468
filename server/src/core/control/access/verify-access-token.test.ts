import assert from 'node:assert/strict'
import { constants, generateKeyPairSync, sign } from 'node:crypto'
import { describe, test } from 'node:test'
import pg from 'pg'
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
 * The door of the administrative plane, through HTTP. Behind it there is nothing at `/v1/admin/anything`, so
 * an administrator gets 404 and everybody else 401 or 403.
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

const knock = (authorization?: string, { url } = api): Promise<Response> =>
  fetch(`${url}/v1/admin/anything`, authorization === undefined ? {} : { headers: { authorization } })

async function assertRefused(response: Response, status: number, error: string): Promise<void> {
  const body = (await response.json()) as Record<string, unknown>
  assert.deepEqual({ status: response.status, error: body['error'] }, { status, error })
  assert.deepEqual(Object.keys(body), ['error', 'message'])
  assert.match(String(body['message']), /^[A-Z].+\.$/)
  assert.equal(response.headers.get('www-authenticate'), status === 401 ? 'Bearer' : null)
}

/** What the forgeries are made from opens the door: none of them is refused for another reason than its own. */
async function assertGenuineTokensPass(): Promise<void> {
  const tokens = {
    'as the service made it': await api.tokenOf(admin.email),
    'made here': genuine(),
    'made here, with a session': genuine({ sid: String(scene.sessions.own) }),
    'of the external issuer in EdDSA': await external.sign({ sub: subject }),
    'of the external issuer in ES256': await external.sign({ sub: subject }, { algorithm: 'ES256' }),
    'of the external issuer in RS256': await external.sign({ sub: subject }, { algorithm: 'RS256' }),
  }
  for (const [what, token] of Object.entries(tokens)) {
    const response = await knock(`Bearer ${token}`)
    assert.equal(response.status, 404, `a token ${what}`)
    assert.equal(((await response.json()) as { error: string }).error, 'not_found')
  }
}

describe('forged and misused tokens', () => {
  test('genuine tokens pass before the forgeries', assertGenuineTokensPass)

  for (const { kind, authorization, error } of kinds) {
    test(`${kind} is refused`, async () => {
      await assertRefused(await knock(await authorization()), 401, error)
    })
  }

  test('every prefix of a genuine token is refused', async () => {
    const token = genuine()
    const lengths = Array.from({ length: token.length - 1 }, (_, index) => index + 1)
    const statuses = await Promise.all(
      lengths.map(async (n) => (await knock(`Bearer ${token.slice(0, n)}`)).status),
    )
    assert.deepEqual(new Set(statuses), new Set([401]))
  })

  test('a genuine token with a bit flipped in any of its bytes is refused', async () => {
    const token = genuine()
    const flipped = token
      .split('.')
      .flatMap((segment, index) =>
        Array.from({ length: Buffer.from(segment, 'base64url').length }, (_, at) =>
          withBytes(token, index, (bytes) => flipAt(bytes, at)),
        ),
      )
    const statuses = await Promise.all(
      flipped.map(async (forged) => (await knock(`Bearer ${forged}`)).status),
    )
    assert.ok(flipped.length > 200)
    assert.deepEqual(new Set(statuses), new Set([401]))
  })

  test('a genuine token in the query, in a form or in a cookie is no credential', async () => {
    const address = `${api.url}/v1/admin/anything`
    await assertRefused(await fetch(`${address}?access_token=${genuine()}`), 401, 'unauthenticated')
    const form = new URLSearchParams({ access_token: genuine() })
    await assertRefused(await fetch(address, { method: 'POST', body: form }), 401, 'unauthenticated')
    const cookie = `access_token=${genuine()}; postern.session_token=${scene.sessionCookie}`
    await assertRefused(await fetch(address, { headers: { cookie } }), 401, 'unauthenticated')
  })

  test('genuine tokens pass after the forgeries', assertGenuineTokensPass)

  test('no key was fetched from where a token pointed', () => {
    assert.equal(stranger.fetches, 0)
  })

  test('no forgery became a failure of the service, and none was logged', () => {
    const failures = api.logLines.filter((line) => (JSON.parse(line) as { level: unknown }).level !== 'info')
    assert.deepEqual(failures, [])
    assert.ok(!api.logLines.some((line) => line.includes('eyJ')), 'a token is in the log')
  })

  test('the kinds are at least forty and all different', (t) => {
    assert.equal(new Set(kinds.map(({ kind }) => kind)).size, kinds.length)
    assert.ok(kinds.length >= 40)
    t.diagnostic(`${kinds.length} kinds of forged and misused tokens`)
  })
})

describe('what the database says of the user', () => {
  const set = (assignment: string, id: number) =>
    database.query(`update control.users set ${assignment} where id = $1`, [id])

  test('a user without the administrative role is refused as such', async () => {
    const user = await api.makeAdmin()
    await set("role = 'user'", user.userId)
    const authorization = `Bearer ${genuine({ sub: String(user.userId) })}`
    await assertRefused(await knock(authorization), 403, 'admin_required')
  })

  test('a role claimed by the token counts for nothing', async () => {
    const user = await api.makeAdmin()
    await set("role = 'user'", user.userId)
    const claims = {
      sub: String(user.userId),
      role: 'admin',
      roles: ['admin'],
      scope: 'admin',
      is_active: true,
    }
    await assertRefused(await knock(`Bearer ${genuine(claims)}`), 403, 'admin_required')
  })

  test('a demoted administrator is refused on the next request, a promoted one welcome again', async () => {
    const { userId, email } = await api.makeAdmin()
    const authorization = `Bearer ${await api.tokenOf(email)}`
    assert.equal((await knock(authorization)).status, 404)
    await set("role = 'user'", userId)
    await assertRefused(await knock(authorization), 403, 'admin_required')
    await set("role = 'admin'", userId)
    assert.equal((await knock(authorization)).status, 404)
  })

  test('a disabled administrator is refused on the next request, an enabled one welcome again', async () => {
    const { userId, email } = await api.makeAdmin()
    const authorization = `Bearer ${await api.tokenOf(email)}`
    assert.equal((await knock(authorization)).status, 404)
    await set('is_active = false', userId)
    await assertRefused(await knock(authorization), 401, 'unauthenticated')
    await set('is_active = true', userId)
    assert.equal((await knock(authorization)).status, 404)
  })

  test('a raised generation ends every token made before', async () => {
    const { userId, email } = await api.makeAdmin()
    const before = `Bearer ${await api.tokenOf(email)}`
    assert.equal((await knock(before)).status, 404)
    await set('token_generation = token_generation + 1', userId)
    await assertRefused(await knock(before), 401, 'unauthenticated')
    assert.equal((await knock(`Bearer ${await api.tokenOf(email)}`)).status, 404)
  })

  test('a token ends with the session that it was drawn from', async () => {
    const { userId } = await api.makeAdmin()
    const sid = await makeSession(database, userId, '1 hour')
    const authorization = `Bearer ${genuine({ sub: String(userId), sid: String(sid) })}`
    assert.equal((await knock(authorization)).status, 404)
    await database.query('delete from control.sessions where id = $1', [sid])
    await assertRefused(await knock(authorization), 401, 'unauthenticated')
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

  test('a key is refused by its shape alone: one answer for all, and no query', async (t) => {
    const query = t.mock.method(pg.Client.prototype, 'query')
    const bodies = new Set<string>()
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      for (const key of shapes) {
        const response = await knock(`${scheme} ${key}`)
        await assertRefused(response.clone(), 403, 'api_key_not_allowed')
        bodies.add(await response.text())
      }
    }
    assert.equal(bodies.size, 1)
    assert.equal(query.mock.callCount(), 0)

    await knock(`Bearer ${genuine()}`)
    assert.ok(query.mock.callCount() > 0, 'the counter counts')
  })
})

describe('made-up key ids', () => {
  test('cause one query for our keys in a second at most, and none for users', async (t) => {
    const clock = new KeyClock()
    const timed = await startApi(database, {}, { keyTiming: clock })
    const query = t.mock.method(pg.Client.prototype, 'query')
    const queriesAbout = (table: string) =>
      query.mock.calls.filter((call) => String(call.arguments[0]).includes(table)).length
    const flood = async () => {
      for (let index = 0; index < 30; index++) {
        const response = await knock(`Bearer ${genuine({}, { kid: `made-up-${index}` })}`, timed)
        await assertRefused(response, 401, 'unauthenticated')
      }
    }
    await flood()
    assert.equal(queriesAbout('signing_keys'), 1)
    clock.advance(1_001)
    await flood()
    assert.equal(queriesAbout('signing_keys'), 2)
    assert.equal(queriesAbout('users'), 0)

    await knock(`Bearer ${genuine()}`, timed)
    assert.equal(queriesAbout('users'), 1, 'the counter counts')
  })
})

describe('the scheme', () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
    test(`may be written ${scheme}`, async () => {
      assert.equal((await knock(`${scheme} ${genuine()}`)).status, 404)
    })
  }
})

/** The external issuer's tokens, for the user whom it knows as `subject` but for what the kind names. */
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
    'without an end': { exp: undefined },
    'without a beginning': { iat: undefined },
    'from the future': { iat: inSeconds(3600) },
    'not valid before later': { nbf: inSeconds(3600) },
    'for another audience, as an ID token is': { aud: 'another-client', nonce: 'n' },
    'without an audience': { aud: undefined },
    'for our own audience': { aud: own.audience },
    'without a subject': { sub: undefined },
    'of a user who is not linked': { sub: 'somebody-else' },
    'of a subject linked in other letters': { sub: subject.toUpperCase() },
    "whose subject is the administrator's number": { sub: String(admin.userId) },
    "whose subject is the administrator's address": { sub: admin.email, email: admin.email },
    'with the claims of our own': ours(),
    'in the name of an issuer that is not configured': { iss: stranger.issuer },
    'with a slash behind its issuer': { iss: `${external.issuer}/` },
  }
  return [
    ...bearers(each('an external token', changes, (change) => external.sign({ sub: subject, ...change }))),
    ...bearers({
      'a token of an issuer that is not configured': () => stranger.sign({ sub: subject }),
      "a stranger's token in the name of the external issuer": () => stranger.sign(claims()),
      "a stranger's token in our name": () => stranger.sign(ours(), { header: ourHeader }),
      "an external token in our name under our key's id": () => external.sign(ours(), { header: ourHeader }),
      "an external user's token by our key": signed('EdDSA', own.kid, ed25519(own.key)),
      "an external user's token by our key under the external key's id": signed(
        'EdDSA',
        ed.kid,
        ed25519(own.key),
      ),
      'an external token without a signature': () => `${encode({ alg: 'none' })}.${encode(claims())}.`,
      'an external token in HS256 with the RSA key as PEM': signed('HS256', rsa.kid, hmac(rsaPem)),
      'an external token in HS256 with a shared key': signed('HS256', 'shared', hmac('a shared secret')),
      'an external token by an RSA key of 1,024 bits': signed('RS256', 'weak', rs256(weak.privateKey)),
      'an external token by a key for encryption': signed('ES256', 'sealing', es256(sealing.privateKey)),
      'an external token in ES256 under the id of an RSA key': signed('ES256', rsa.kid, es256(ec.privateKey)),
      'an external token in RS256 under the id of an EC key': signed('RS256', ec.kid, rs256(rsa.privateKey)),
      'an external token in PS256, which is not on our list': signed('PS256', rsa.kid, pss),
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
