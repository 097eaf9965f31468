import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startApi } from '../testing/harness/api.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { cachedReadiness } from './readiness.ts'

/** Requests without credentials. */
const atMost = 5
const database = await testDatabase()
const start = () => startApi(database, { POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: String(atMost) })

async function statusesOf(url: string, requests: number): Promise<number[]> {
  const statuses = []
  for (let n = 0; n < requests; n++) {
    const answer = await fetch(url)
    const body = (await answer.json()) as { error?: string }
    if (answer.status === 429) {
      assert.equal(body.error, 'rate_limited')
      assert.match(answer.headers.get('retry-after') ?? '', /^[1-9][0-9]*$/)
    }
    statuses.push(answer.status)
  }
  return statuses
}

describe('the limit per address', () => {
  for (const [path, usual] of [
    ['/v1/auth/jwks.json', 200],
    ['/v1/auth/session', 401],
    ['/v1/auth/sessions', 401],
    ['/readyz', 200],
    ['/v1/installation', 200],
    ['/v1/installation/logo', 404],
  ] as const) {
    test(`applies to ${path}`, async () => {
      const { url } = await start()
      assert.deepEqual(await statusesOf(`${url}${path}`, atMost + 2), [
        ...Array.from({ length: atMost }, () => usual),
        ...[429, 429],
      ])
    })
  }

  test('for /readyz is separate from the limit for other requests from the same address', async () => {
    const { url } = await start()
    assert.equal((await statusesOf(`${url}/v1/auth/jwks.json`, atMost + 1)).at(-1), 429)
    assert.deepEqual(await statusesOf(`${url}/readyz`, 1), [200])
  })
})

describe('readiness', () => {
  test('is checked once per second, regardless of the number of requests', async () => {
    let [asked, now] = [0, 0]
    let release = (): void => {}
    const ready = cachedReadiness(
      () => {
        asked++
        return new Promise<void>((resolve) => {
          release = resolve
        })
      },
      () => now,
    )
    const many = Array.from({ length: 100 }, ready)
    now = 60_000
    many.push(ready())
    assert.equal(asked, 1, 'also while the database does not respond')
    release()
    await Promise.all(many)
    now += 999
    await ready()
    assert.equal(asked, 1)
    now += 1
    const next = ready()
    assert.equal(asked, 2)
    release()
    await next
  })

  test('returns a failure to all waiting requests, and is checked again', async () => {
    let now = 0
    let fails = true
    const ready = cachedReadiness(
      async () => {
        if (fails) throw new Error('away')
      },
      () => now,
    )
    await assert.rejects(ready(), /away/)
    fails = false
    await assert.rejects(ready(), /away/)
    now += 1_000
    await ready()
  })
})
