import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { inspect } from 'node:util'
import { createResolver } from '../platform/net/dns.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { patienceMs } from '../testing/harness/waiting.ts'
import { startDns } from '../testing/peers/dns.ts'
import { type SesFault, type SesLocation, sesCredentials, startSesPeer } from '../testing/peers/ses-peer.ts'
import { steadyPort } from '../testing/peers/steady-port.ts'
import { ProviderFailure } from './sending-identities.ts'
import { type SesOptions, SesProvider } from './ses-identities.ts'

const peer = await startSesPeer()

function providerAt(location: SesLocation, options: Partial<SesOptions> = {}): SesProvider {
  const provider = new SesProvider({
    region: location.region,
    accountId: location.account,
    endpoint: peer.url,
    credentials: sesCredentials(location.account),
    ...options,
  })
  cleanUp(async () => provider.close())
  return provider
}

const ses = providerAt(peer.location)
let names = 0
const newName = () => `customer${++names}.example`
const callsOf = (domain: string) =>
  peer.calls.filter((call) => call.domain === domain).map(({ kind }) => kind)
const deedsOf = (domain: string) =>
  peer.deeds.filter((deed) => deed.domain === domain).map(({ kind }) => kind)

async function failureOf(work: Promise<unknown>): Promise<ProviderFailure> {
  try {
    await work
  } catch (error) {
    assert.ok(error instanceof ProviderFailure, inspect(error))
    assert.ok(!inspect(error, { depth: 10, showHidden: true }).includes('canary'), 'no secret is revealed')
    return error
  }
  return assert.fail('it did not fail')
}

/** Changes environment variables for the test; `undefined` removes one. */
function withEnvironment(t: TestContext, changes: Record<string, string | undefined>): void {
  for (const [name, value] of Object.entries(changes)) {
    const before = process.env[name]
    const set = (next: string | undefined) => {
      if (next === undefined) delete process.env[name]
      else process.env[name] = next
    }
    set(value)
    t.after(() => set(before))
  }
}

describe('an identity in SES', () => {
  test('is created with Easy DKIM and has three tokens and a zone', async () => {
    const domain = newName()
    const registration = await ses.register(domain)
    assert.equal(registration.dkimTokens.length, 3)
    assert.deepEqual(registration, { dkimTokens: peer.tokens(domain), dkimZone: 'dkim.amazonses.com' })
    assert.deepEqual(peer.calls.find((call) => call.domain === domain)?.body, {
      EmailIdentity: domain,
      DkimSigningAttributes: { NextSigningKeyLength: 'RSA_2048_BIT' },
      Tags: [{ Key: 'postern', Value: 'postern' }],
    })
  })

  test('that already exists is left unchanged', async () => {
    const domain = newName()
    const first = await ses.register(domain)
    assert.deepEqual(await ses.register(domain), first)
    assert.deepEqual(deedsOf(domain), ['create'])
  })

  test('reports its state until it is verified', async () => {
    const domain = newName()
    const { dkimTokens, dkimZone } = await ses.register(domain)
    const report = { isRegistered: true, isVerified: false, dkimTokens, dkimZone }
    assert.deepEqual(await ses.describe(domain), {
      ...report,
      detail: 'SES has not found the DKIM records yet. Last check: HOST_NOT_FOUND.',
    })
    peer.setDkim(domain, 'FAILED')
    assert.match((await ses.describe(domain)).detail ?? '', /72 hours/)
    peer.setDkim(domain, 'TEMPORARY_FAILURE')
    assert.match((await ses.describe(domain)).detail ?? '', /no longer finds/)
    peer.setDkim(domain, 'SUCCESS')
    assert.deepEqual(await ses.describe(domain), { ...report, isVerified: true, detail: null })
  })

  test('is verified by its DKIM records in DNS', async () => {
    const domain = newName()
    const { dkimTokens, dkimZone } = await ses.register(domain)
    const records = dkimTokens.map((token) => ({
      name: `${token}._domainkey.${domain}`,
      type: 'CNAME' as const,
      value: `${token}.${dkimZone}`,
    }))
    const dns = await startDns({ '.': records.slice(1) })
    const resolver = createResolver({ servers: [dns.server], timeoutMs: 2000, tries: 2 })
    assert.equal(await peer.checkDns(domain, resolver), false, 'two of three are not enough')
    assert.equal((await ses.describe(domain)).isVerified, false)
    await dns.setZone('.', records)
    assert.equal(await peer.checkDns(domain, resolver), true)
    assert.equal((await ses.describe(domain)).isVerified, true)
  })

  test('of a subdomain inherits verification from its parent, but not DKIM', async () => {
    const parent = newName()
    await ses.register(parent)
    await ses.register(`shop.${parent}`)
    assert.equal((await ses.describe(`shop.${parent}`)).isVerified, false)
    peer.setDkim(parent, 'SUCCESS')
    const report = await ses.describe(`shop.${parent}`)
    assert.equal(report.isVerified, true)
    assert.match(report.detail ?? '', /not found the DKIM records/)
  })

  test('that was never created is not registered', async () => {
    assert.deepEqual(await ses.describe(newName()), {
      isRegistered: false,
      isVerified: false,
      dkimTokens: [],
      dkimZone: null,
      detail: 'SES has no such identity.',
    })
  })

  test('is deregistered idempotently, and a new one has new tokens', async () => {
    const domain = newName()
    const first = await ses.register(domain)
    await ses.deregister(domain)
    await ses.deregister(domain)
    assert.deepEqual(deedsOf(domain), ['create', 'delete'])
    assert.equal((await ses.describe(domain)).isRegistered, false)
    const second = await ses.register(domain)
    assert.ok(second.dkimTokens.every((token) => !first.dkimTokens.includes(token)))
  })

  test('is separate in another region or account', async () => {
    const domain = newName()
    const locations = [
      peer.location,
      { ...peer.location, region: 'us-east-1' },
      { ...peer.location, account: '444455556666' },
    ]
    const tokens = new Set<string>()
    for (const location of locations) {
      const provider = providerAt(location)
      assert.deepEqual(provider.location, location)
      for (const token of (await provider.register(domain)).dkimTokens) tokens.add(token)
    }
    assert.equal(tokens.size, 9)
    await ses.deregister(domain)
    assert.deepEqual(
      locations.map((location) => peer.has(domain, location)),
      [false, true, true],
    )
  })

  test('that Postern did not create is used but never deleted', async () => {
    const domain = newName()
    const theirs = providerAt(peer.location, { owner: 'another.example.com' })
    const first = await theirs.register(domain)
    assert.deepEqual((await ses.register(domain)).dkimTokens, first.dkimTokens)
    await ses.deregister(domain)
    assert.deepEqual(deedsOf(domain), ['create'])
    await theirs.deregister(domain)
    assert.deepEqual(deedsOf(domain), ['create', 'delete'])
  })

  test('that has its own DKIM key is rejected and left unchanged', async () => {
    const domain = newName()
    peer.makeByHand(domain)
    const failure = await failureOf(ses.register(domain))
    assert.equal(failure.isPermanent, true)
    assert.match(failure.message, /with its own DKIM key \(BYODKIM\)/)
    assert.deepEqual(deedsOf(domain), [])
    assert.deepEqual((await ses.describe(domain)).dkimTokens, [])
  })
})

describe('a failed call to SES', () => {
  test('is retried once when the request was lost', async () => {
    const domain = newName()
    peer.failNext('create', 'lose_request')
    assert.deepEqual((await ses.register(domain)).dkimTokens, peer.tokens(domain))
    assert.deepEqual(callsOf(domain), ['create', 'create'])
    assert.deepEqual(deedsOf(domain), ['create'])
  })

  test('finds the created identity when the response was lost', async () => {
    const domain = newName()
    peer.failNext('create', 'lose_answer')
    assert.deepEqual((await ses.register(domain)).dkimTokens, peer.tokens(domain))
    assert.deepEqual(callsOf(domain), ['create', 'create', 'get'])
    assert.deepEqual(deedsOf(domain), ['create'])
    peer.failNext('delete', 'lose_answer')
    await ses.deregister(domain)
    assert.deepEqual(deedsOf(domain), ['create', 'delete'])
  })

  test('can be repeated and takes effect once', async () => {
    const domain = newName()
    peer.failNext('create', 'lose_answer', 2)
    const failure = await failureOf(ses.register(domain))
    assert.equal(failure.isPermanent, false)
    assert.equal(failure.message, `SES could not register ${domain}: the connection failed (ECONNRESET).`)
    assert.deepEqual((await ses.register(domain)).dkimTokens, peer.tokens(domain))
    assert.deepEqual(deedsOf(domain), ['create'])
  })

  const verdicts: [SesFault & string, isPermanent: boolean, attempts: number, words: RegExp][] = [
    ['too_many_requests', false, 2, /too many requests \(TooManyRequestsException, request [\w-]+\)/],
    ['throttling', false, 2, /too many requests \(ThrottlingException/],
    ['internal', false, 2, /internal SES error \(InternalFailure, status 500/],
    ['unavailable', false, 2, /internal SES error \(ServiceUnavailable, status 503/],
    ['concurrent_modification', false, 2, /ConcurrentModificationException/],
    // The SDK treats this as throttling and retries once, which does not help.
    ['limit_exceeded', true, 2, /Limit of identities exceeded \(LimitExceededException/],
    ['bad_request', true, 1, /: Invalid domain name \(BadRequestException/],
    ['access_denied', true, 1, /user\/x is not authorized \(AccessDeniedException/],
    ['expired_token', true, 1, /credentials rejected \(ExpiredTokenException/],
  ]
  for (const [fault, isPermanent, attempts, words] of verdicts) {
    test(`is ${isPermanent ? 'permanent' : 'temporary'} with ${fault}`, async () => {
      const [absent, present] = [newName(), newName()]
      await ses.register(present)
      const calls = {
        create: [absent, () => ses.register(absent)],
        get: [absent, () => ses.describe(absent)],
        delete: [present, () => ses.deregister(present)],
      } as const
      for (const kind of ['create', 'get', 'delete'] as const) {
        const [domain, call] = calls[kind]
        peer.failNext(kind, fault, attempts)
        const failure = await failureOf(call())
        assert.equal(failure.isPermanent, isPermanent)
        assert.match(failure.message, words)
        assert.ok(failure.message.includes(domain), 'it names the operation')
      }
      const times = (kind: string) => Array<string>(attempts).fill(kind)
      assert.deepEqual(callsOf(absent), [...times('create'), ...times('get')])
      assert.deepEqual(callsOf(present), ['create', 'get', ...times('delete')])
      assert.deepEqual([deedsOf(absent), deedsOf(present)], [[], ['create']])
    })
  }

  test('is temporary when the connection is refused', async () => {
    const nobody = providerAt(peer.location, { endpoint: `http://127.0.0.1:${await steadyPort()}` })
    const failure = await failureOf(nobody.describe('customer.example'))
    assert.equal(failure.isPermanent, false)
    assert.match(failure.message, /the connection failed \(ECONNREFUSED\)/)
  })

  test('is retried once if there is no response, and then fails', {
    timeout: patienceMs,
  }, async (t) => {
    const domain = newName()
    const [neverMs, answer] = [10 * patienceMs, Promise.withResolvers<void>()]
    let unanswered = 0
    peer.hooks.onRequest = () => (unanswered-- > 0 ? answer.promise : undefined)
    t.after(() => {
      delete peer.hooks.onRequest
      answer.resolve()
    })
    const hasty = providerAt(peer.location, {
      timeouts: { connectMs: neverMs, attemptMs: 2000, callMs: neverMs },
    })
    unanswered = 1
    assert.equal((await hasty.describe(domain)).isRegistered, false)
    assert.deepEqual(callsOf(domain), ['get', 'get'])

    unanswered = 2
    const failure = await failureOf(hasty.describe(domain))
    assert.equal(failure.isPermanent, false)
    assert.match(failure.message, /timed out/)
    assert.equal(callsOf(domain).length, 4)

    const bounded = providerAt(peer.location, {
      timeouts: { connectMs: neverMs, attemptMs: neverMs, callMs: 300 },
    })
    unanswered = 1
    assert.match((await failureOf(bounded.describe(domain))).message, /timed out/)
  })

  test('is permanent if the credentials are invalid, and does not reveal them', async () => {
    const right = sesCredentials(peer.location.account)
    const wrong = {
      'a wrong secret': { ...right, secretAccessKey: 'canary-wrong', sessionToken: 'canary-session' },
      'an unknown key': { ...right, accessKeyId: 'AKIACANARYUNKNOWN' },
    }
    for (const [what, credentials] of Object.entries(wrong)) {
      const domain = newName()
      const failure = await failureOf(providerAt(peer.location, { credentials }).register(domain))
      assert.equal(failure.isPermanent, true, what)
      assert.match(failure.message, /credentials rejected/, what)
      assert.ok(!peer.has(domain))
    }
  })
})

describe('the credentials for SES', () => {
  test('come from the environment unless they are configured', async () => {
    const provider = providerAt(peer.location, { credentials: undefined })
    assert.equal((await provider.register(newName())).dkimTokens.length, 3)
  })

  test('that are missing cause a permanent failure', async (t) => {
    withEnvironment(t, {
      AWS_ACCESS_KEY_ID: undefined,
      AWS_SECRET_ACCESS_KEY: undefined,
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
      AWS_CONFIG_FILE: '/dev/null',
    })
    const failure = await failureOf(
      providerAt(peer.location, { credentials: undefined }).describe('x.example'),
    )
    assert.equal(failure.isPermanent, true)
    assert.match(failure.message, /no AWS credentials were found/)
  })

  test('that do not arrive in time end the call when it times out', async (t) => {
    const silent = createServer(() => {})
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      silent.closeAllConnections()
      silent.close()
    })
    withEnvironment(t, {
      AWS_ACCESS_KEY_ID: undefined,
      AWS_SECRET_ACCESS_KEY: undefined,
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${(silent.address() as AddressInfo).port}/role`,
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
      AWS_CONFIG_FILE: '/dev/null',
    })
    const timeouts = { connectMs: 200, attemptMs: 200, callMs: 300 }
    const failure = await failureOf(
      providerAt(peer.location, { credentials: undefined, timeouts }).describe('x.example'),
    )
    // If the SDK gave up first, it would report missing credentials, which is permanent.
    assert.equal(failure.isPermanent, false)
    assert.match(failure.message, /timed out/)
  })

  test('for another account are rejected if they contain the account id', async (t) => {
    withEnvironment(t, { AWS_ACCOUNT_ID: '999988887777' })
    const domain = newName()
    const failure = await failureOf(providerAt(peer.location, { credentials: undefined }).register(domain))
    assert.equal(failure.isPermanent, true)
    assert.match(failure.message, /account 999988887777, not to POSTERN_SES_ACCOUNT_ID 111122223333/)
    assert.deepEqual(callsOf(domain), [])
  })

  test('cause no other SDK request', async (t) => {
    let requests = 0
    const metadata = createServer((_, response) => {
      requests++
      response.end('eu-west-1')
    })
    await new Promise<void>((resolve) => metadata.listen(0, '127.0.0.1', resolve))
    t.after(() => metadata.close())
    const elsewhere = `http://127.0.0.1:${(metadata.address() as AddressInfo).port}`
    withEnvironment(t, {
      AWS_DEFAULTS_MODE: 'auto',
      AWS_EC2_METADATA_SERVICE_ENDPOINT: elsewhere,
      AWS_ENDPOINT_URL: elsewhere,
    })
    assert.equal((await providerAt(peer.location).register(newName())).dkimTokens.length, 3)
    assert.equal(requests, 0)
  })
})

describe('the SES peer', () => {
  test('rejects a request that is unsigned or signed for another service', async () => {
    const address = `${peer.url}/v2/email/identities/x.example`
    const bare = await fetch(address)
    assert.equal(bare.status, 403)
    assert.equal(bare.headers.get('x-amzn-errortype'), 'MissingAuthenticationTokenException')
    const scope = 'Credential=AKIATEST111122223333/20260101/eu-west-1/s3/aws4_request'
    const authorization = `AWS4-HMAC-SHA256 ${scope}, SignedHeaders=host, Signature=${'0'.repeat(64)}`
    const foreign = await fetch(address, { headers: { authorization } })
    assert.equal(foreign.headers.get('x-amzn-errortype'), 'InvalidSignatureException')
  })

  test('records when a request arrived, took effect and got its response', async (t) => {
    const domain = newName()
    const moments: unknown[] = []
    const note = (moment: string) => (call: { kind: string }) => {
      moments.push([moment, call.kind, peer.has(domain)])
    }
    Object.assign(peer.hooks, {
      onRequest: note('request'),
      onEffect: note('effect'),
      onAnswer: note('answer'),
    })
    t.after(() =>
      Object.assign(peer.hooks, { onRequest: undefined, onEffect: undefined, onAnswer: undefined }),
    )
    await ses.register(domain)
    await ses.deregister(domain)
    assert.deepEqual(moments, [
      ['request', 'create', false],
      ['effect', 'create', true],
      ['answer', 'create', true],
      ['request', 'get', true],
      ['effect', 'get', true],
      ['answer', 'get', true],
      ['request', 'delete', true],
      ['effect', 'delete', false],
      ['answer', 'delete', false],
    ])
  })
})
