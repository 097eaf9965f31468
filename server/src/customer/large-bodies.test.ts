import assert from 'node:assert/strict'
import { request } from 'node:http'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { senders } from '../testing/fixtures/sending-projects.ts'
import { startApi } from '../testing/harness/api.ts'
import { Client, signedIn } from '../testing/harness/client.ts'
import { testDatabase } from '../testing/harness/database.ts'
import { bareEnvironment, startPostern } from '../testing/harness/postern-process.ts'

/** Bodies of tens of megabytes, sent concurrently with other tenants' requests (H4 in docs/security.md). */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender } = senders(api, database, admin)

type Sender = Awaited<ReturnType<typeof makeSender>>

const mebibyte = 1024 * 1024

/**
 * The size limit for a request. It is higher than the limit for a message. A body of this size is read completely and
 * then rejected.
 */
const refused = 422

function bodyOf({ domain }: Sender, bytes: number): Buffer {
  const start = `{"from":"a@${domain.name}","to":["b@example.net"],"subject":"s","text":"`
  return Buffer.concat([Buffer.from(start), Buffer.alloc(bytes, 'x'), Buffer.from('"}')])
}

const largeBody = (sender: Sender): Buffer => bodyOf(sender, 35 * mebibyte)

/** A request whose body the test can send in two pieces. */
function post(url: string, { secret }: Sender, body: Buffer) {
  const call = request(`${url}/v1/messages`, {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'content-length': body.length,
    },
  })
  const status = new Promise<number | undefined>((resolve, reject) => {
    call.once('error', reject)
    call.once('response', (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode))
    })
  })
  return { call, status }
}

function send(url: string, sender: Sender, body = largeBody(sender)): Promise<number | undefined> {
  const { call, status } = post(url, sender, body)
  call.end(body)
  return status
}

describe('a project with a slow large body', () => {
  test('delays only its own next large body', async () => {
    const [slow, other] = [await makeSender(), await makeSender()]
    const body = largeBody(slow)
    const { call, status } = post(api.url, slow, body)
    // The write completes once the API reads the body. By then, the API has acquired the bytes.
    await new Promise((written) => call.write(body.subarray(0, body.length - 1), written))
    let isAnswered = false
    const second = send(api.url, slow).then((answered) => {
      isAnswered = true
      return answered
    })
    assert.equal(await send(api.url, other, bodyOf(other, 100 * 1024)), 202)
    assert.equal((await slow.program.get('/messages')).status, 200, 'its small requests are served')
    assert.equal(isAnswered, false)
    call.end(body.subarray(body.length - 1))
    assert.deepEqual([await status, await second], [refused, refused])
  })

  test('releases its bytes when the client disconnects', async () => {
    const slow = await makeSender()
    const body = largeBody(slow)
    const { call, status } = post(api.url, slow, body)
    call.write(body.subarray(0, body.length / 2))
    const second = send(api.url, slow)
    call.destroy()
    await assert.rejects(status)
    assert.equal(await second, refused)
  })
})

describe('clients that disconnect immediately', () => {
  test('do not reduce the budget', async () => {
    const slow = await makeSender()
    const { port, hostname } = new URL(api.url)
    const leave = () =>
      new Promise<void>((resolve) => {
        const socket = connect(Number(port), hostname, () => {
          const head = [
            'POST /v1/messages HTTP/1.1',
            `host: ${hostname}`,
            `authorization: Bearer ${slow.secret}`,
            'content-type: application/json',
            `content-length: ${36 * mebibyte}`,
          ]
          socket.write(`${head.join('\r\n')}\r\n\r\n{`, () => socket.resetAndDestroy())
        })
        socket.once('close', () => resolve())
      })
    for (let no = 0; no < 20; no++) await leave()
    assert.equal(await send(api.url, slow), refused)
  })
})

describe('a process with a heap of 512 MiB', () => {
  const bodies = Number(process.env['POSTERN_TEST_BODIES'] ?? 12)

  test(`survives ${bodies} concurrent bodies of 35 MiB and serves other requests`, async () => {
    const postern = await startPostern(
      'api',
      {
        ...bareEnvironment,
        ...{ NODE_OPTIONS: '--max-old-space-size=512', POSTERN_DATABASE_URL: database.url },
        ...{ POSTERN_PUBLIC_URL: 'http://localhost:8080', POSTERN_HTTP_PORT: '0' },
        ...{
          POSTERN_AUTH_SECRETS: `1:${'test-secret-'.repeat(4)}`,
          POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
        },
      },
      ['serving'],
    )
    const attackers = await Promise.all(Array.from({ length: 4 }, makeSender))
    const quiet = await makeSender()
    assert.equal(await send(postern.url, quiet), refused, 'its thread reads large bodies')
    const program = new Client(postern.url, quiet.secret, '/v1')
    const sent = Array.from({ length: bodies }, (_, no) => {
      const attacker = attackers[no % attackers.length] ?? assert.fail()
      // On a slow machine a request can exceed its timeout of 30 seconds; the API then closes the connection.
      return send(postern.url, attacker).catch(() => undefined)
    })
    const statuses: number[] = []
    const message = { from: `a@${quiet.domain.name}`, to: ['b@example.net'], subject: 's', text: 't' }
    for (let no = 0; no < 10; no++) statuses.push((await program.post('/messages', message)).status)
    assert.deepEqual(new Set(statuses), new Set([202]))
    await Promise.all(sent)
    assert.equal((await program.post('/messages', message)).status, 202, 'the process is still running')
    await postern.stop()
  })
})
