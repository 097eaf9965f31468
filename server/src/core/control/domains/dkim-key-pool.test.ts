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

describe('a pair of keys', () => {
  test('is one of RSA with 2048 bits, its public half as it stands in DNS', async () => {
    const { publicKey, privateKey } = await start().offer(wanted, async (pair) => pair.use())
    const { modulusLength } = createPrivateKey(privateKey).asymmetricKeyDetails ?? {}
    const half = createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
    assert.deepEqual([modulusLength, publicKey], [2048, half.toString('base64')])
  })

  test("that was used is nobody else's, whatever became of the request", async () => {
    const pairs = start()
    const seen: DkimKeyPair[] = []
    for (const failure of [undefined, new Error('no commit')]) {
      const request = pairs.offer(wanted, async (pair) => {
        seen.push(pair.use())
        assert.equal(pair.use(), seen.at(-1), 'a transaction that is run again has the same')
        if (failure) throw failure
      })
      await request.catch((error) => assert.equal(error, failure))
    }
    seen.push(await pairs.offer(wanted, async (pair) => pair.use()))
    assert.equal(new Set(seen.map(({ publicKey }) => publicKey)).size, 3)
  })

  test('that was not used is there for the next one, at once', async () => {
    const pairs = start()
    const offered = await pairs.offer(wanted, async (pair) => pair)
    await assert.rejects(pairs.offer(wanted, async () => assert.fail('refused')))
    assert.equal(await pairs.offer(wanted, async (pair) => pair), offered)
  })

  test('is not made for who does not ask for one, and then there is none', async () => {
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
const limited = () => new PosternError('limit_exceeded', 'No more today.')

describe('a pair of keys, beside whatever else the process does,', () => {
  test('is made although every thread of libuv is taken, so that it takes none itself', async () => {
    const pairs = start()
    // Tests have forty pairs prepared (scripts/prepared-keys.ts); the ones below are to be generated.
    for (let no = 0; no < 40; no++) await generate('rsa', preparedKind)
    // The thread is there from then on.
    await pairs.offer(wanted, use)
    const fifo = path.join(tmpdir(), `postern-dkim-${process.pid}`)
    execFileSync('mkfifo', [fifo])
    const threads = Number(process.env['UV_THREADPOOL_SIZE'] ?? 4)
    // To open a FIFO for reading lasts until somebody opens it for writing.
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

  test('is made for each project in turn, however many another one has asked for', async () => {
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

  test('waits among a bounded number of its project, and of all', async () => {
    const pairs = start({ waitingAtMost: 2, allWaitingAtMost: 5 })
    const asked = [1, 1, 1, 1, 2, 2, 3].map((projectId) => pairs.offer({ projectId }, use))
    const ends = await Promise.allSettled(asked)
    assert.deepEqual(
      ends.map((end) => (end.status === 'fulfilled' ? 'made' : end.reason.code)),
      ['made', 'made', 'made', 'rate_limited', 'made', 'made', 'unavailable'],
    )
    assert.match((await pairs.offer(wanted, use)).privateKey, /PRIVATE KEY/)
  })

  test('is not made for a project that has reached its limit, and who needs one is refused', async () => {
    const pairs = start({ module: new URL('data:text/javascript,process.exit(1)') })
    const refusal = limited()
    assert.equal(await pairs.offer({ projectId: 1, refusal }, async () => 'needs none'), 'needs none')
    await assert.rejects(pairs.offer({ projectId: 1, refusal }, use), refusal)
  })

  test('goes to the next one when a limit refused the first, and is made once for many of them', async () => {
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

  test('fails alone when the thread dies; the next one has a new thread', async () => {
    const dying = start({ module: new URL('data:text/javascript,process.exit(1)') })
    await assert.rejects(dying.offer(wanted, use), hasCode('unavailable'))
    await assert.rejects(dying.offer(wanted, use), hasCode('unavailable'))
  })

  test('is waited for no more once the process is stopping', async () => {
    const pairs = start({ module: new URL('data:text/javascript,setInterval(() => {}, 1000)') })
    const asked = [pairs.offer(wanted, use), pairs.offer({ projectId: 2 }, use)]
    const ends = Promise.allSettled(asked)
    await pairs.close()
    for (const end of await ends) assert.equal(end.status, 'rejected')
    await assert.rejects(pairs.offer(wanted, use), hasCode('unavailable'))
  })
})
