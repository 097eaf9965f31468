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

/** Each world is an API with its own external issuer and its own clock for kept keys. */
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

// As in issuer-keys.ts: while no more than this has passed, keys are not loaded again.
const cooldownMs = 5_000
const ownCooldownMs = 1_000

interface World {
  api: TestApi
  issuer: TestIssuer
  clock: KeyClock
  admin: { userId: number; email: string }
  subject: string
  /** A token of the issuer for the linked subject. */
  sign(claims?: JWTPayload, options?: Parameters<TestIssuer['sign']>[1]): Promise<string>
  /** The status and the error code of a request with a token. */
  knock(token: string): Promise<string>
}

const welcome = '404 not_found'
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
    knock: (token) => knock(api, token),
  }
}

function link({ context: { auth, db } }: TestApi, email: string, { issuer }: TestIssuer, subject: string) {
  return linkAdministrator({ auth, adminDb: db.admin, identityDb: db.identity }, email, issuer, subject)
}

const ask = ({ url }: TestApi, token: string): Promise<Response> =>
  fetch(`${url}/v1/admin/anything`, { headers: { authorization: `Bearer ${token}` } })

async function knock(api: TestApi, token: string): Promise<string> {
  const response = await ask(api, token)
  return `${response.status} ${((await response.json()) as { error: string }).error}`
}

const nowSeconds = () => Math.floor(Date.now() / 1000)

describe('who may issue tokens', () => {
  describe('an external issuer', () => {
    for (const algorithm of ['EdDSA', 'ES256', 'RS256'] satisfies Algorithm[]) {
      test(`vouches for the linked user in ${algorithm}`, async () => {
        assert.equal(await world.knock(await world.sign({}, { algorithm })), welcome)
      })
    }

    test('may send its audience in a list', async () => {
      assert.equal(await world.knock(await world.sign({ aud: ['x', world.issuer.audience] })), welcome)
    })

    test('knows its users by subject, never by email', async () => {
      const { email } = world.admin
      for (const sub of ['another', email, String(world.admin.userId), '']) {
        assert.equal(await world.knock(await world.sign({ sub, email, email_verified: true })), refused, sub)
      }
      assert.equal(await world.knock(await world.sign({ email: 'else@example.com' })), welcome)
    })

    const alike: Record<string, unknown> = { '12345': 12345, true: true, '{"a":1}': { a: 1 }, '{"a"}': ['a'] }
    for (const [subject, value] of Object.entries(alike)) {
      test(`means nobody by the subject ${JSON.stringify(value)}, not the user linked as "${subject}"`, async () => {
        await link(world.api, world.admin.email, world.issuer, subject)
        assert.equal(await world.knock(await world.sign({ sub: subject })), welcome)
        assert.equal(await world.knock(await world.sign({ sub: value } as JWTPayload)), refused)
      })
    }

    test('means nobody by a subject with a NUL, which the database cannot hold', async () => {
      assert.equal(await world.knock(await world.sign({ sub: `${world.subject}\0` })), refused)
    })

    test('means nobody by a subject with half of a surrogate pair, whatever the database makes of it', async () => {
      await link(world.api, world.admin.email, world.issuer, '\ufffd')
      assert.equal(await world.knock(await world.sign({ sub: '\ud800' })), refused)
    })

    test('may have subjects of 255 characters', async () => {
      const subject = 'x'.repeat(255)
      await link(world.api, world.admin.email, world.issuer, subject)
      assert.equal(await world.knock(await world.sign({ sub: subject })), welcome)
      assert.equal(await world.knock(await world.sign({ sub: `${subject}x` })), refused)
    })

    test('cannot bring back a disabled user', async () => {
      const admin = await world.api.makeAdmin()
      await link(world.api, admin.email, world.issuer, 'disabled')
      const token = await world.sign({ sub: 'disabled' })
      assert.equal(await world.knock(token), welcome)
      await database.query('update control.users set is_active = false where id = $1', [admin.userId])
      assert.equal(await world.knock(token), refused)
    })

    test('cannot make an administrator of a user who is none', async () => {
      const admin = await world.api.makeAdmin()
      await link(world.api, admin.email, world.issuer, 'demoted')
      await database.query("update control.users set role = 'user' where id = $1", [admin.userId])
      assert.equal(
        await world.knock(await world.sign({ sub: 'demoted', role: 'admin' })),
        '403 admin_required',
      )
    })

    test('tokens end when the generation of the user is raised, and count again when issued after', async () => {
      const raisedAt = nowSeconds() - 60
      const before = await raised.sign({ iat: raisedAt - 1 })
      const inSameSecond = await raised.sign({ iat: raisedAt })
      for (const token of [before, inSameSecond]) assert.equal(await raised.knock(token), welcome)
      await database.query(
        `update control.users set token_generation = 2, token_generation_at = to_timestamp($2) + interval '1 ms'
          where id = $1`,
        [raised.admin.userId, raisedAt],
      )
      assert.equal(await raised.knock(before), refused)
      assert.equal(await raised.knock(inSameSecond), refused, 'the same second is still before')
      assert.equal(await raised.knock(await raised.sign({ iat: raisedAt + 1 })), welcome)
    })

    test('must send the type that it is configured to send', async () => {
      const withType = (typ: string | undefined) => typed.sign({}, { header: { typ } })
      assert.equal(await typed.knock(await withType('at+jwt')), welcome)
      assert.equal(await typed.knock(await withType('application/at+jwt')), welcome, 'RFC 9068 §2.1')
      for (const typ of ['JWT', 'id_token', 'logout+jwt', 'at', '', undefined]) {
        assert.equal(await typed.knock(await withType(typ)), refused, `typ ${typ}`)
      }
    })

    test('need not send a type where none is configured', async () => {
      for (const typ of ['JWT', 'at+jwt', 'application/at+jwt', undefined]) {
        assert.equal(await world.knock(await world.sign({}, { header: { typ } })), welcome, `typ ${typ}`)
      }
      for (const typ of ['logout+jwt', 'dpop+jwt', 'secevent+jwt', '']) {
        assert.equal(await world.knock(await world.sign({}, { header: { typ } })), refused, `typ ${typ}`)
      }
    })

    test('may let its tokens live for a day and no longer', async () => {
      const iat = nowSeconds()
      assert.equal(await world.knock(await world.sign({ iat, exp: iat + 86_400 })), welcome)
      assert.equal(await world.knock(await world.sign({ iat, exp: iat + 86_401 })), refused)
    })

    test('must send nbf where it is configured to', async () => {
      assert.equal(await timed.knock(await timed.sign({ nbf: nowSeconds() })), welcome)
      assert.equal(await timed.knock(await timed.sign()), refused)
      assert.equal(await timed.knock(await timed.sign({ nbf: nowSeconds() + 60 })), refused)
    })

    test('need not send nbf where it is not configured to, but is held to it', async () => {
      assert.equal(await world.knock(await world.sign()), welcome)
      assert.equal(await world.knock(await world.sign({ nbf: nowSeconds() + 60 })), refused)
    })
  })

  describe('keys of an external issuer', () => {
    test('a new key counts once the cooldown is over, and the dropped one no longer', async () => {
      const { issuer, clock, sign, knock } = rotating
      const old = await sign()
      assert.equal(await knock(old), welcome)
      issuer.rotate()
      const fresh = await sign()
      assert.equal(await knock(fresh), refused, 'the set was fetched just now')
      assert.equal(await knock(old), welcome, 'the set that is known still holds the old key')
      clock.advance(cooldownMs)
      assert.equal(await knock(fresh), refused, 'the cooldown is not over')
      assert.equal(issuer.fetches, 1)

      clock.advance(1)
      assert.equal(await knock(fresh), welcome)
      assert.equal(await knock(old), refused, 'the set was replaced')
      assert.equal(issuer.fetches, 2)
    })

    test('made-up key ids cause one fetch per cooldown', async () => {
      const { issuer, clock, sign, knock } = flooded
      const flood = async () => {
        const tokens = await Promise.all(
          Array.from({ length: 30 }, (_, index) => sign({}, { header: { kid: `made-up-${index}` } })),
        )
        for (const token of tokens.slice(0, 10)) assert.equal(await knock(token), refused)
        const answers = await Promise.all(tokens.map(knock))
        assert.deepEqual(new Set(answers), new Set([refused]))
      }
      assert.equal(await knock(await sign()), welcome)
      await flood()
      assert.equal(issuer.fetches, 1)
      clock.advance(cooldownMs + 1)
      await flood()
      assert.equal(issuer.fetches, 2)
    })

    test('made-up key ids cause one fetch per cooldown while the issuer is down, too', async () => {
      const { issuer, clock, sign, knock } = floodedWhileDown
      assert.equal(await knock(await sign()), welcome)
      issuer.health = 'fails'
      clock.advance(cooldownMs + 1)
      for (let index = 0; index < 20; index++)
        await knock(await sign({}, { header: { kid: `made-up-${index}` } }))
      assert.equal(issuer.fetches, 2, 'one fetch for 20 requests')
    })

    test("one issuer's keys do not count for another", async () => {
      const [first, second] = [await startIssuer(), await startIssuer()]
      const api = await startApi(database, {
        POSTERN_OIDC_ISSUERS: JSON.stringify([first.configuration, second.configuration]),
      })
      const admin = await api.makeAdmin()
      await link(api, admin.email, first, 'ada')
      await link(api, admin.email, second, 'lovelace')
      const sent = async (by: TestIssuer, claims: JWTPayload) => knock(api, await by.sign(claims))
      assert.equal(await sent(first, { sub: 'ada' }), welcome)
      assert.equal(await sent(second, { sub: 'lovelace' }), welcome)
      assert.equal(await sent(first, { iss: second.issuer, sub: 'lovelace' }), refused)
      assert.equal(await sent(second, { iss: first.issuer, sub: 'ada' }), refused)
      assert.equal(await sent(first, { sub: 'lovelace' }), refused, "the other's subject")
      assert.equal(await sent(second, { sub: 'ada' }), refused, "the other's subject")
    })
  })

  describe('a key set that cannot be had', () => {
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

    for (const [health, { api, issuer, clock, sign, knock }] of Object.entries(unhealthy)) {
      // Only the limit ends these fetches: the issuer never does.
      const isEndless = health === 'hangs' || health === 'stalls'
      const become = (next: IssuerHealth) => {
        issuer.health = next
        clock.fetchTimeoutMs = isEndless && next !== 'well' ? 1_000 : patienceMs
      }

      test(`is no fault of the caller when the issuer ${health}, and known keys go on counting`, async () => {
        become(health as IssuerHealth)
        await assertUnavailable(api, await sign())
        assert.equal(issuer.fetches, 1)
        const isTimeout = api.logLines.some((line) => line.includes('aborted due to timeout'))
        assert.equal(isTimeout, isEndless, api.logLines.join('\n'))

        await assertUnavailable(api, await sign())
        assert.equal(issuer.fetches, 1, 'it is not asked again at once')

        become('well')
        clock.advance(cooldownMs + 1)
        assert.equal(await knock(await sign()), welcome)
        assert.equal(issuer.fetches, 2, 'it is asked again once the cooldown is over')

        become(health as IssuerHealth)
        clock.advance(cooldownMs + 1)
        assert.equal(await knock(await sign()), welcome)
        assert.equal(issuer.fetches, 2)
        await assertUnavailable(api, await sign({}, { header: { kid: 'not-known' } }))
        assert.equal(await knock(await sign()), welcome)
      })
    }

    test('is no fault of the caller when there is nobody at its address', async () => {
      await assertUnavailable(unreachable.api, await unreachable.sign())
    })

    test('leaves known keys alone when nobody is at its address any more', async () => {
      const token = await stopped.sign()
      assert.equal(await stopped.knock(token), welcome)
      await stopped.issuer.stop()
      assert.equal(await stopped.knock(token), welcome)
    })

    test('leaves our own tokens alone', async () => {
      const { api, admin } = unreachable
      assert.equal(await knock(api, await api.tokenOf(admin.email)), welcome)
    })
  })

  describe('our own signing keys', () => {
    const kidOf = (token: string) => decodeProtectedHeader(token).kid
    const publishedKids = async () => {
      const response = await fetch(`${ownKeys.url}/v1/auth/jwks.json`)
      return ((await response.json()) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid)
    }

    test('a key that stopped signing verifies for an hour, the next one once the cooldown is over', async () => {
      const { email } = await ownKeys.makeAdmin()
      const expire = (kid: string | undefined, ago: string) =>
        ownKeysDatabase.query(
          'update control.signing_keys set expires_at = now() - $2::interval where id = $1',
          [kid, ago],
        )
      const old = await ownKeys.tokenOf(email)
      assert.equal(await knock(ownKeys, old), welcome)

      await expire(kidOf(old), '1 second')
      const fresh = await ownKeys.tokenOf(email)
      assert.notEqual(kidOf(fresh), kidOf(old))
      assert.deepEqual(await publishedKids(), [kidOf(old), kidOf(fresh)])
      ownKeysClock.advance(ownCooldownMs)
      assert.equal(await knock(ownKeys, fresh), refused, 'the cooldown is not over')
      ownKeysClock.advance(1)
      assert.equal(await knock(ownKeys, fresh), welcome)
      assert.equal(await knock(ownKeys, old), welcome)

      await expire(kidOf(old), '61 minutes')
      assert.deepEqual(await publishedKids(), [kidOf(fresh)])
      ownKeysClock.advance(ownCooldownMs + 1)
      // The keys are read again when one is not known.
      const [, payload, signature] = fresh.split('.')
      const unknown = Buffer.from('{"alg":"EdDSA","typ":"at+jwt","kid":"999"}').toString('base64url')
      assert.equal(await knock(ownKeys, `${unknown}.${payload}.${signature}`), refused)
      assert.equal(await knock(ownKeys, old), refused)
      assert.equal(await knock(ownKeys, fresh), welcome)
    })

    test('keys that cannot be read are our failure, not a fault of the caller', async () => {
      const { email } = await unreadable.makeAdmin()
      const token = await unreadable.tokenOf(email)
      await unreadableDatabase.query('revoke select on control.signing_keys from postern_identity')
      assert.equal(await knock(unreadable, token), '500 internal_error')
      await unreadableDatabase.query('grant select on control.signing_keys to postern_identity')
      unreadableClock.advance(ownCooldownMs + 1)
      assert.equal(await knock(unreadable, token), welcome)
    })
  })
})
