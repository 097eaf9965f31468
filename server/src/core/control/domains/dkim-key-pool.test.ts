import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createPrivateKey, createPublicKey, generateKeyPair } from 'node:crypto'
import { closeSync, openSync, unlinkSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { PosternError } from '../../../platform/errors.ts'
import { cleanUp } from '../../../testing/harness/cleanup.ts'
import {
  type DkimKeyPair,
  DkimKeyPool,
  type DkimKeyPoolOptions,
  type OfferedKeyPair,
} from './dkim-key-pool.ts'

const wanted = { projectId: 1 }

function start(options?: DkimKeyPoolOptions): DkimKeyPool {
  const pairs = new DkimKeyPool(options)
  cleanUp(() => pairs.close())
  return pairs
}

describe('a key pair', () => {
  test('is a 2048-bit RSA key pair, with the public key in DNS format', async () => {
    const { publicKey, privateKey } = await start().offer(wanted, async (pair) => pair.use())
    const { modulusLength } = createPrivateKey(privateKey).asymmetricKeyDetails ?? {}
    const half = createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
    assert.deepEqual([modulusLength, publicKey], [2048, half.toString('base64')])
  })

  test('is not reused after use, even if the request failed', async () => {
    const pairs = start()
    const seen: DkimKeyPair[] = []
    for (const failure of [undefined, new Error('no commit')]) {
      const request = pairs.offer(wanted, async (pair) => {
        seen.push(pair.use())
        assert.equal(pair.use(), seen.at(-1), 'a retried transaction gets the same pair')
        if (failure) throw failure
      })
      await request.catch((error) => assert.equal(error, failure))
    }
    seen.push(await pairs.offer(wanted, async (pair) => pair.use()))
    assert.equal(new Set(seen.map(({ publicKey }) => publicKey)).size, 3)
  })

  test('is offered again if it was not used', async () => {
    const pairs = start()
    const offered = await pairs.offer(wanted, async (pair) => pair)
    await assert.rejects(pairs.offer(wanted, async () => assert.fail('refused')))
    assert.equal(await pairs.offer(wanted, async (pair) => pair), offered)
  })

  test('is not available to an operation that declared that it needs none', async () => {
    await start().offer(false, async (pair) => assert.throws(() => pair.use(), /makesDkimKey/))
  })
})

const generate = promisify(generateKeyPair)
const preparedKind = {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const

const use = async (pair: OfferedKeyPair): Promise<DkimKeyPair> => pair.use()
const hasCode = (code: string) => (error: unknown) => error instanceof PosternError && error.code === code
const limited = () => new PosternError('limit_exceeded', 'Daily limit reached.')

describe('key pair generation', () => {
  test('works while all libuv threads are busy', async () => {
    const pairs = start()
    // The test setup prepares forty pairs (scripts/prepared-keys.ts). The pairs below must be generated.
    for (let no = 0; no < 40; no++) await generate('rsa', preparedKind)
    // Starts the worker thread.
    await pairs.offer(wanted, use)
    const fifo = path.join(tmpdir(), `postern-dkim-${process.pid}`)
    execFileSync('mkfifo', [fifo])
    const threads = Number(process.env['UV_THREADPOOL_SIZE'] ?? 4)
    // Opening a FIFO for reading blocks until another process opens it for writing.
    const opening = Array.from({ length: threads }, () => open(fifo, 'r'))
    try {
      const { privateKey } = await pairs.offer(wanted, use)
      assert.match(privateKey, /^-----BEGIN PRIVATE KEY-----/)
    } finally {
      const writer = openSync(fifo, 'w')
      for (const file of await Promise.all(opening)) await file.close()
      closeSync(writer)
      unlinkSync(fifo)
    }
  })

  test('alternates between projects, regardless of how many pairs one of them requests', async () => {
    const pairs = start()
    const order: string[] = []
    const ask = (projectId: number) =>
      pairs.offer({ projectId }, async (pair) => {
        pair.use()
        order.push(`project ${projectId}`)
      })
    await Promise.all([ask(1), ask(1), ask(1), ask(1), ask(2), ask(3)])
    assert.deepEqual(order.slice(0, 4), ['project 1', 'project 1', 'project 2', 'project 3'])
  })

  test('has a bounded queue per project and in total', async () => {
    const pairs = start({ waitingAtMost: 2, allWaitingAtMost: 5 })
    const asked = [1, 1, 1, 1, 2, 2, 3].map((projectId) => pairs.offer({ projectId }, use))
    const ends = await Promise.allSettled(asked)
    assert.deepEqual(
      ends.map((end) => (end.status === 'fulfilled' ? 'made' : end.reason.code)),
      ['made', 'made', 'made', 'rate_limited', 'made', 'made', 'unavailable'],
    )
    assert.match((await pairs.offer(wanted, use)).privateKey, /PRIVATE KEY/)
  })

  test('is skipped for a project at its limit, and using the pair throws', async () => {
    const pairs = start({ module: new URL('data:text/javascript,process.exit(1)') })
    const refusal = limited()
    assert.equal(await pairs.offer({ projectId: 1, refusal }, async () => 'needs none'), 'needs none')
    await assert.rejects(pairs.offer({ projectId: 1, refusal }, use), refusal)
  })

  test('reuses the pair of a request that was rejected by a limit', async () => {
    const pairs = start()
    const seen = new Set<string>()
    for (let no = 0; no < 20; no++) {
      const refused = pairs.offer(wanted, async (pair) => {
        seen.add(pair.use().publicKey)
        throw limited()
      })
      await assert.rejects(refused, hasCode('limit_exceeded'))
    }
    assert.equal(seen.size, 1)
  })

  test('starts a new thread after a crash, and only one request fails', async () => {
    const dying = start({ module: new URL('data:text/javascript,process.exit(1)') })
    await assert.rejects(dying.offer(wanted, use), hasCode('unavailable'))
    await assert.rejects(dying.offer(wanted, use), hasCode('unavailable'))
  })

  test('rejects waiting requests when the process stops', async () => {
    const pairs = start({ module: new URL('data:text/javascript,setInterval(() => {}, 1000)') })
    const asked = [pairs.offer(wanted, use), pairs.offer({ projectId: 2 }, use)]
    const ends = Promise.allSettled(asked)
    await pairs.close()
    for (const end of await ends) assert.equal(end.status, 'rejected')
    await assert.rejects(pairs.offer(wanted, use), hasCode('unavailable'))
  })
})
