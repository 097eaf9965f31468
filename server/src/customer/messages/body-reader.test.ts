import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { BroadcastChannel } from 'node:worker_threads'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { cleanUp } from '../../testing/harness/cleanup.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { eventually, patienceMs } from '../../testing/harness/waiting.ts'
import { BodyReader } from './body-reader.ts'

/** The worker thread that reads large bodies delays only requests with large bodies. */

const moduleOf = (code: string): URL => new URL(`data:text/javascript,${encodeURIComponent(code)}`)

const mebibyte = 1024 * 1024

/** An API whose worker thread waits before it reads a body. */
async function withHeldThread(name: string) {
  const held = moduleOf(`
    import { BroadcastChannel } from 'node:worker_threads'
    const channel = new BroadcastChannel('${name}')
    const isLetGo = new Promise((resolve) => { channel.onmessage = resolve })
    channel.postMessage('begun')
    await isLetGo
    channel.close()
    await import('${new URL('./body-reader.ts', import.meta.url).href}')`)
  const channel = new BroadcastChannel(name)
  const begun = new Promise<unknown>((resolve) => {
    channel.onmessage = resolve
  })
  const database = await testDatabase()
  const api = await startApi(database, {}, { bodyReaderOptions: { module: held, withinMs: patienceMs } })
  const { makeSender } = senders(api, database, await signedIn(api))
  const letGo = () => {
    channel.postMessage('go on')
    channel.close()
  }
  return { api, makeSender, begun, letGo }
}

describe('while a large body is in the thread', () => {
  test('other requests are served', async () => {
    const { makeSender, begun, letGo } = await withHeldThread('answers others')
    const [large, other] = [await makeSender(), await makeSender()]
    let isAnswered = false
    const sent = large.send({ text: 'x'.repeat(2 * mebibyte) }).then((id) => {
      isAnswered = true
      return id
    })
    await begun
    for (let no = 0; no < 5; no++) {
      await other.send()
      await large.send()
      await other.send({ text: 'x'.repeat(mebibyte / 2) })
      assert.equal((await other.program.get('/messages')).status, 200)
    }
    assert.equal(isAnswered, false)
    letGo()
    assert.match(await sent, /^[0-9a-f-]{36}$/)
  })

  test('its bytes stay acquired even if its client has disconnected', async () => {
    const { api, makeSender, begun, letGo } = await withHeldThread('keeps the share')
    const reads = mock.method(api.context.bodyReader, 'read').mock
    const [large, other] = [await makeSender(), await makeSender()]
    const text = 'x'.repeat(10 * mebibyte)
    const body = JSON.stringify({ from: `a@${large.domain.name}`, to: ['b@example.net'], subject: 's', text })
    const gone = new AbortController()
    const first = fetch(`${api.url}/v1/messages`, {
      ...{ method: 'POST', body, signal: gone.signal },
      headers: { ...large.program.headers, 'content-type': 'application/json' },
    })
    await begun
    gone.abort()
    await assert.rejects(first)
    const second = large.send({ text })
    for (let no = 0; no < 20; no++) await other.send()
    assert.equal(reads.callCount(), 1)
    letGo()
    await second
    assert.equal(reads.callCount(), 2)
  })
})

describe('a thread that fails', () => {
  const reader = new BodyReader({
    // Long enough to start a worker thread on a busy machine.
    withinMs: 10_000,
    module: moduleOf(`
      import { parentPort } from 'node:worker_threads'
      parentPort.on('message', ({ bytes }) => {
        const word = Buffer.from(bytes).toString()
        if (word === 'hang') for (;;);
        if (word === 'die') process.exit(1)
        if (word === 'throw') throw new Error('broken')
        parentPort.postMessage({ check: 'schema', fault: { code: 'validation_failed', message: word } })
      })`),
  })
  cleanUp(() => reader.close())

  const read = async (word: string): Promise<unknown> => {
    const bytes = Uint8Array.from(Buffer.from(word))
    const body = await reader.read({ operation: 'messages.send', bytes, isRepeatable: false })
    return body.schemaOutcome
  }

  for (const word of ['hang', 'die', 'throw']) {
    test(`on one body rejects only that body, and reads the others: ${word}`, async () => {
      const outcomes = await Promise.allSettled(['before', word, 'after', 'later'].map(read))
      assert.deepEqual(
        outcomes.map((outcome) =>
          outcome.status === 'fulfilled'
            ? (outcome.value as { error: Error }).error.message
            : outcome.reason.code,
        ),
        ['before', 'unavailable', 'after', 'later'],
      )
    })
  }

  test('after being idle for too long is replaced', async () => {
    const idle = new BodyReader({
      idleMs: 1,
      module: moduleOf(`
        import { parentPort, threadId } from 'node:worker_threads'
        parentPort.on('message', () => {
          parentPort.postMessage({ check: 'schema', fault: { code: 'validation_failed', message: String(threadId) } })
        })`),
    })
    cleanUp(() => idle.close())
    const threadOf = async () => {
      const bytes = new Uint8Array(1)
      const { schemaOutcome } = await idle.read({ operation: 'messages.send', bytes, isRepeatable: false })
      return schemaOutcome === true ? undefined : schemaOutcome.error.message
    }
    const first = await threadOf()
    await eventually('another thread answers', async () => (await threadOf()) !== first)
  })
})

describe('a machine that cannot start a thread', () => {
  test('rejects each body temporarily, and no request waits forever', async () => {
    // The constructor of Worker throws for this URL.
    const reader = new BodyReader({ module: new URL('https://example.com/reader.js') })
    cleanUp(() => reader.close())
    const body = () => ({
      ...{ operation: 'messages.send' as const, isRepeatable: false },
      bytes: new Uint8Array(Buffer.from('{}')),
    })
    const answers = await Promise.allSettled([reader.read(body()), reader.read(body())])
    answers.push(...(await Promise.allSettled([reader.read(body())])))
    for (const answer of answers)
      assert.ok(answer.status === 'rejected' && answer.reason.code === 'unavailable', String(answer.status))
  })
})
