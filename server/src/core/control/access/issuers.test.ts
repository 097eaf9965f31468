import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decodeProtectedHeader, type JWTPayload } from 'jose'
import { startApi, type TestApi } from '../../../testing/harness/api.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { patienceMs } from '../../../testing/harness/waiting.ts'
import {
  type Algorithm,
  type IssuerHealth,
  KeyClock,
  startIssuer,
  type TestIssuer,
} from '../../../testing/peers/issuer.ts'
import { linkAdministrator } from './administrators.ts'
import type { ExternalIssuerOptions } from './issuers.ts'

/** Each world is an API with its own external issuer and its own clock for the key cache. */
const database = await testDatabase()
const world = await startWorld()
const rotating = await startWorld()
const flooded = await startWorld()
const floodedWhileDown = await startWorld()
const raised = await startWorld()
const typed = await startWorld({ token_type: 'at+jwt' })
const timed = await startWorld({ requires_nbf: true })
const unhealthy: Record<Exclude<IssuerHealth, 'well'>, World> = {
  fails: await startWorld(),
  hangs: await startWorld(),
  stalls: await startWorld(),
  'talks nonsense': await startWorld(),
  'serves no set': await startWorld(),
  'serves no keys': await startWorld(),
  redirects: await startWorld(),
}
const unreachable = await startWorld()
await unreachable.issuer.stop()
const stopped = await startWorld()
const ownKeysDatabase = await testDatabase()
const ownKeysClock = new KeyClock()
const ownKeys = await startApi(ownKeysDatabase, {}, { keyTiming: ownKeysClock })
const unreadableDatabase = await testDatabase()
const unreadableClock = new KeyClock()
const unreadable = await startApi(unreadableDatabase, {}, { keyTiming: unreadableClock })

// The cooldowns in issuer-keys.ts: keys are not reloaded within these times.
const cooldownMs = 5_000
const ownCooldownMs = 1_000

interface World {
  api: TestApi
  issuer: TestIssuer
  clock: KeyClock
  admin: { userId: number; email: string }
  subject: string
  /** A token from the issuer for the linked subject. */
  sign(claims?: JWTPayload, options?: Parameters<TestIssuer['sign']>[1]): Promise<string>
  /** The status and error code of the response to a request with a token. */
  authenticate(token: string): Promise<string>
}

const accepted = '404 not_found'
const refused = '401 unauthenticated'

async function startWorld(options: Partial<ExternalIssuerOptions> = {}): Promise<World> {
  const issuer = await startIssuer()
  const clock = new KeyClock()
  const settings = { POSTERN_OIDC_ISSUERS: JSON.stringify([{ ...issuer.configuration, ...options }]) }
  const api = await startApi(database, settings, { keyTiming: clock })
  const admin = await api.makeAdmin()
  const subject = 'ada-7f3c'
  await link(api, admin.email, issuer, subject)
  return {
    api,
    issuer,
    clock,
    admin,
    subject,
    sign: (claims, options) => issuer.sign({ sub: subject, ...claims }, options),
    authenticate: (token) => authenticate(api, token),
  }
}

function link({ context: { auth, db } }: TestApi, email: string, { issuer }: TestIssuer, subject: string) {
  return linkAdministrator({ auth, adminDb: db.admin, identityDb: db.identity }, email, issuer, subject)
}

const ask = ({ url }: TestApi, token: string): Promise<Response> =>
  fetch(`${url}/v1/admin/anything`, { headers: { authorization: `Bearer ${token}` } })

async function authenticate(api: TestApi, token: string): Promise<string> {
  const response = await ask(api, token)
  return `${response.status} ${((await response.json()) as { error: string }).error}`
}

const nowSeconds = () => Math.floor(Date.now() / 1000)

describe('token issuers', () => {
  describe('an external issuer', () => {
    for (const algorithm of ['EdDSA', 'ES256', 'RS256'] satisfies Algorithm[]) {
      test(`authenticates the linked user with ${algorithm}`, async () => {
        assert.equal(await world.authenticate(await world.sign({}, { algorithm })), accepted)
      })
    }

    test('can set its audience to a list', async () => {
      assert.equal(
        await world.authenticate(await world.sign({ aud: ['x', world.issuer.audience] })),
        accepted,
      )
    })

    test('identifies users by subject, never by email', async () => {
      const { email } = world.admin
      for (const sub of ['another', email, String(world.admin.userId), '']) {
        assert.equal(
          await world.authenticate(await world.sign({ sub, email, email_verified: true })),
          refused,
          sub,
        )
      }
      assert.equal(await world.authenticate(await world.sign({ email: 'else@example.com' })), accepted)
    })

    const alike: Record<string, unknown> = { '12345': 12345, true: true, '{"a":1}': { a: 1 }, '{"a"}': ['a'] }
    for (const [subject, value] of Object.entries(alike)) {
      test(`does not match the subject ${JSON.stringify(value)} to the user linked as "${subject}"`, async () => {
        await link(world.api, world.admin.email, world.issuer, subject)
        assert.equal(await world.authenticate(await world.sign({ sub: subject })), accepted)
        assert.equal(await world.authenticate(await world.sign({ sub: value } as JWTPayload)), refused)
      })
    }

    test('is rejected if its subject contains a NUL, which the database cannot store', async () => {
      assert.equal(await world.authenticate(await world.sign({ sub: `${world.subject}\0` })), refused)
    })

    test('is rejected if its subject contains an unpaired surrogate', async () => {
      await link(world.api, world.admin.email, world.issuer, '\ufffd')
      assert.equal(await world.authenticate(await world.sign({ sub: '\ud800' })), refused)
    })

    test('can set a subject of 255 characters', async () => {
      const subject = 'x'.repeat(255)
      await link(world.api, world.admin.email, world.issuer, subject)
      assert.equal(await world.authenticate(await world.sign({ sub: subject })), accepted)
      assert.equal(await world.authenticate(await world.sign({ sub: `${subject}x` })), refused)
    })

    test('cannot enable a disabled user', async () => {
      const admin = await world.api.makeAdmin()
      await link(world.api, admin.email, world.issuer, 'disabled')
      const token = await world.sign({ sub: 'disabled' })
      assert.equal(await world.authenticate(token), accepted)
      await database.query('update control.users set is_active = false where id = $1', [admin.userId])
      assert.equal(await world.authenticate(token), refused)
    })

    test('cannot grant the admin role', async () => {
      const admin = await world.api.makeAdmin()
      await link(world.api, admin.email, world.issuer, 'demoted')
      await database.query("update control.users set role = 'user' where id = $1", [admin.userId])
      assert.equal(
        await world.authenticate(await world.sign({ sub: 'demoted', role: 'admin' })),
        '403 admin_required',
      )
    })

    test("has its earlier tokens rejected and later ones accepted after the user's generation changed", async () => {
      const raisedAt = nowSeconds() - 60
      const before = await raised.sign({ iat: raisedAt - 1 })
      const inSameSecond = await raised.sign({ iat: raisedAt })
      for (const token of [before, inSameSecond]) assert.equal(await raised.authenticate(token), accepted)
      await database.query(
        `update control.users set token_generation = 2, token_generation_at = to_timestamp($2) + interval '1 ms'
          where id = $1`,
        [raised.admin.userId, raisedAt],
      )
      assert.equal(await raised.authenticate(before), refused)
      assert.equal(await raised.authenticate(inSameSecond), refused, 'the same second counts as before')
      assert.equal(await raised.authenticate(await raised.sign({ iat: raisedAt + 1 })), accepted)
    })

    test('must set the configured type', async () => {
      const withType = (typ: string | undefined) => typed.sign({}, { header: { typ } })
      assert.equal(await typed.authenticate(await withType('at+jwt')), accepted)
      assert.equal(await typed.authenticate(await withType('application/at+jwt')), accepted, 'RFC 9068 §2.1')
      for (const typ of ['JWT', 'id_token', 'logout+jwt', 'at', '', undefined]) {
        assert.equal(await typed.authenticate(await withType(typ)), refused, `typ ${typ}`)
      }
    })

    test('can omit the type if none is configured', async () => {
      for (const typ of ['JWT', 'at+jwt', 'application/at+jwt', undefined]) {
        assert.equal(
          await world.authenticate(await world.sign({}, { header: { typ } })),
          accepted,
          `typ ${typ}`,
        )
      }
      for (const typ of ['logout+jwt', 'dpop+jwt', 'secevent+jwt', '']) {
        assert.equal(
          await world.authenticate(await world.sign({}, { header: { typ } })),
          refused,
          `typ ${typ}`,
        )
      }
    })

    test('can issue tokens valid for at most a day', async () => {
      const iat = nowSeconds()
      assert.equal(await world.authenticate(await world.sign({ iat, exp: iat + 86_400 })), accepted)
      assert.equal(await world.authenticate(await world.sign({ iat, exp: iat + 86_401 })), refused)
    })

    test('must set nbf if configured to', async () => {
      assert.equal(await timed.authenticate(await timed.sign({ nbf: nowSeconds() })), accepted)
      assert.equal(await timed.authenticate(await timed.sign()), refused)
      assert.equal(await timed.authenticate(await timed.sign({ nbf: nowSeconds() + 60 })), refused)
    })

    test('can omit nbf if it is not required, but must respect it if it is set', async () => {
      assert.equal(await world.authenticate(await world.sign()), accepted)
      assert.equal(await world.authenticate(await world.sign({ nbf: nowSeconds() + 60 })), refused)
    })
  })

  describe('keys of an external issuer', () => {
    test('a new key is accepted and a removed one rejected after the cooldown', async () => {
      const { issuer, clock, sign, authenticate } = rotating
      const old = await sign()
      assert.equal(await authenticate(old), accepted)
      issuer.rotate()
      const fresh = await sign()
      assert.equal(await authenticate(fresh), refused, 'the set has just been fetched')
      assert.equal(await authenticate(old), accepted, 'the cached set still has the old key')
      clock.advance(cooldownMs)
      assert.equal(await authenticate(fresh), refused, 'the cooldown is not over')
      assert.equal(issuer.fetches, 1)

      clock.advance(1)
      assert.equal(await authenticate(fresh), accepted)
      assert.equal(await authenticate(old), refused, 'the set was replaced')
      assert.equal(issuer.fetches, 2)
    })

    test('invented key ids cause one fetch per cooldown', async () => {
      const { issuer, clock, sign, authenticate } = flooded
      const flood = async () => {
        const tokens = await Promise.all(
          Array.from({ length: 30 }, (_, index) => sign({}, { header: { kid: `made-up-${index}` } })),
        )
        for (const token of tokens.slice(0, 10)) assert.equal(await authenticate(token), refused)
        const answers = await Promise.all(tokens.map(authenticate))
        assert.deepEqual(new Set(answers), new Set([refused]))
      }
      assert.equal(await authenticate(await sign()), accepted)
      await flood()
      assert.equal(issuer.fetches, 1)
      clock.advance(cooldownMs + 1)
      await flood()
      assert.equal(issuer.fetches, 2)
    })

    test('invented key ids also cause one fetch per cooldown while the issuer is down', async () => {
      const { issuer, clock, sign, authenticate } = floodedWhileDown
      assert.equal(await authenticate(await sign()), accepted)
      issuer.health = 'fails'
      clock.advance(cooldownMs + 1)
      for (let index = 0; index < 20; index++)
        await authenticate(await sign({}, { header: { kid: `made-up-${index}` } }))
      assert.equal(issuer.fetches, 2, 'one fetch for 20 requests')
    })

    test("one issuer's keys do not verify another issuer's tokens", async () => {
      const [first, second] = [await startIssuer(), await startIssuer()]
      const api = await startApi(database, {
        POSTERN_OIDC_ISSUERS: JSON.stringify([first.configuration, second.configuration]),
      })
      const admin = await api.makeAdmin()
      await link(api, admin.email, first, 'ada')
      await link(api, admin.email, second, 'lovelace')
      const sent = async (by: TestIssuer, claims: JWTPayload) => authenticate(api, await by.sign(claims))
      assert.equal(await sent(first, { sub: 'ada' }), accepted)
      assert.equal(await sent(second, { sub: 'lovelace' }), accepted)
      assert.equal(await sent(first, { iss: second.issuer, sub: 'lovelace' }), refused)
      assert.equal(await sent(second, { iss: first.issuer, sub: 'ada' }), refused)
      assert.equal(await sent(first, { sub: 'lovelace' }), refused, 'subject of the other issuer')
      assert.equal(await sent(second, { sub: 'ada' }), refused, 'subject of the other issuer')
    })
  })

  describe('an unavailable key set', () => {
    async function assertUnavailable(api: TestApi, token: string): Promise<void> {
      const response = await ask(api, token)
      const body = (await response.json()) as Record<string, unknown>
      assert.deepEqual(
        { status: response.status, error: body['error'] },
        { status: 503, error: 'unavailable' },
      )
      assert.deepEqual(Object.keys(body), ['error', 'message'])
      assert.match(response.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
      assert.equal(response.headers.get('www-authenticate'), null)
    }

    for (const [health, { api, issuer, clock, sign, authenticate }] of Object.entries(unhealthy)) {
      // These requests end only when they time out.
      const isEndless = health === 'hangs' || health === 'stalls'
      const become = (next: IssuerHealth) => {
        issuer.health = next
        clock.fetchTimeoutMs = isEndless && next !== 'well' ? 1_000 : patienceMs
      }

      test(`results in unavailable when the issuer ${health}, while cached keys remain valid`, async () => {
        become(health as IssuerHealth)
        await assertUnavailable(api, await sign())
        assert.equal(issuer.fetches, 1)
        const isTimeout = api.logLines.some((line) => line.includes('aborted due to timeout'))
        assert.equal(isTimeout, isEndless, api.logLines.join('\n'))

        await assertUnavailable(api, await sign())
        assert.equal(issuer.fetches, 1, 'no second fetch within the cooldown')

        become('well')
        clock.advance(cooldownMs + 1)
        assert.equal(await authenticate(await sign()), accepted)
        assert.equal(issuer.fetches, 2, 'a second fetch after the cooldown')

        become(health as IssuerHealth)
        clock.advance(cooldownMs + 1)
        assert.equal(await authenticate(await sign()), accepted)
        assert.equal(issuer.fetches, 2)
        await assertUnavailable(api, await sign({}, { header: { kid: 'not-known' } }))
        assert.equal(await authenticate(await sign()), accepted)
      })
    }

    test('results in unavailable when its address refuses connections', async () => {
      await assertUnavailable(unreachable.api, await unreachable.sign())
    })

    test('does not affect cached keys when its address stops responding', async () => {
      const token = await stopped.sign()
      assert.equal(await stopped.authenticate(token), accepted)
      await stopped.issuer.stop()
      assert.equal(await stopped.authenticate(token), accepted)
    })

    test('does not affect tokens that Postern issued', async () => {
      const { api, admin } = unreachable
      assert.equal(await authenticate(api, await api.tokenOf(admin.email)), accepted)
    })
  })

  describe("Postern's signing keys", () => {
    const kidOf = (token: string) => decodeProtectedHeader(token).kid
    const publishedKids = async () => {
      const response = await fetch(`${ownKeys.url}/v1/auth/jwks.json`)
      return ((await response.json()) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid)
    }

    test('a key verifies tokens for an hour after it stops signing, and its successor verifies them after the cooldown', async () => {
      const { email } = await ownKeys.makeAdmin()
      const expire = (kid: string | undefined, ago: string) =>
        ownKeysDatabase.query(
          'update control.signing_keys set expires_at = now() - $2::interval where id = $1',
          [kid, ago],
        )
      const old = await ownKeys.tokenOf(email)
      assert.equal(await authenticate(ownKeys, old), accepted)

      await expire(kidOf(old), '1 second')
      const fresh = await ownKeys.tokenOf(email)
      assert.notEqual(kidOf(fresh), kidOf(old))
      assert.deepEqual(await publishedKids(), [kidOf(old), kidOf(fresh)])
      ownKeysClock.advance(ownCooldownMs)
      assert.equal(await authenticate(ownKeys, fresh), refused, 'the cooldown is not over')
      ownKeysClock.advance(1)
      assert.equal(await authenticate(ownKeys, fresh), accepted)
      assert.equal(await authenticate(ownKeys, old), accepted)

      await expire(kidOf(old), '61 minutes')
      assert.deepEqual(await publishedKids(), [kidOf(fresh)])
      ownKeysClock.advance(ownCooldownMs + 1)
      // An unknown key id causes a reload.
      const [, payload, signature] = fresh.split('.')
      const unknown = Buffer.from('{"alg":"EdDSA","typ":"at+jwt","kid":"999"}').toString('base64url')
      assert.equal(await authenticate(ownKeys, `${unknown}.${payload}.${signature}`), refused)
      assert.equal(await authenticate(ownKeys, old), refused)
      assert.equal(await authenticate(ownKeys, fresh), accepted)
    })

    test('unreadable keys result in a server error, not in unauthenticated', async () => {
      const { email } = await unreadable.makeAdmin()
      const token = await unreadable.tokenOf(email)
      await unreadableDatabase.query('revoke select on control.signing_keys from postern_identity')
      assert.equal(await authenticate(unreadable, token), '500 internal_error')
      await unreadableDatabase.query('grant select on control.signing_keys to postern_identity')
      unreadableClock.advance(ownCooldownMs + 1)
      assert.equal(await authenticate(unreadable, token), accepted)
    })
  })
})
