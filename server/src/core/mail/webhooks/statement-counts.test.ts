import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mailRows } from '../../../testing/fixtures/mail-rows.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { recordStatements } from '../../../testing/harness/statements.ts'
import { type TestEndpoint, webhookHarness } from '../../../testing/harness/webhook-harness.ts'
import type { Result } from './deliveries.sql.ts'
import { writeDeliveryResults } from './delivery-results.ts'
import { EndpointQueues } from './endpoint-queues.ts'
import { PendingDeliveries } from './pending-deliveries.ts'
import { Prefetch } from './prefetch.ts'
import { type Target, Targets } from './targets.ts'

/** How many statements deliveries need: each statement serves many deliveries. */
const database = await testDatabase()
const stage = await webhookHarness(database)
const { api, mail, makeProject, makeEndpoint, publishEvents } = stage
const { makeMail } = mailRows(database)
const queues = new EndpointQueues(mail)

/** Claims the queues of these endpoints. */
async function claimOf(endpoints: readonly TestEndpoint[]) {
  await queues.wake()
  const limit = { most: 100, notOf: [] }
  const claimed = await queues.claim({ healthy: limit, failing: limit })
  return endpoints.map(
    ({ id }) => claimed.find(({ endpoint_id }) => endpoint_id === id) ?? assert.fail(`${id} is not due`),
  )
}

describe('the deliveries of a run', () => {
  test('are read in groups that grow, with three statements each', async (t) => {
    const projectId = await makeProject()
    const endpoint = await makeEndpoint(projectId)
    const { messageId } = await makeMail(projectId)
    const ids = await publishEvents(projectId, 500, { messageId })
    const [queue = assert.fail()] = await claimOf([endpoint])
    const statements = recordStatements(t)
    const taken: string[] = []
    await new Promise<void>((resolve, reject) => {
      const takeAll = (error?: unknown) => {
        if (error !== undefined) return reject(error)
        for (prefetch.fill({ isSingle: false }); !prefetch.isEmpty; prefetch.fill({ isSingle: false })) {
          taken.push(prefetch.take().due.event_id)
        }
        if (prefetch.isExhausted) resolve()
      }
      const prefetch = new Prefetch(queue, new PendingDeliveries(mail), takeAll)
      takeAll()
    })
    assert.deepEqual(taken.toSorted(), ids.toSorted())
    // 32, 64, 128 and 256 deliveries, and the last 20.
    for (const table of ['mail.deliveries', 'mail.events', 'mail.messages']) {
      assert.equal(statements.about(`from ${table} `), 5, table)
    }
  })

  test('take a bounded amount of memory, regardless of the number of runs', () => {
    const pending = new PendingDeliveries(mail)
    const reserved = Array.from({ length: 500 }, () => pending.reserve(256))
    assert.equal(reserved[0], 256)
    assert.ok(reserved.every((count) => count >= 1))
    const total = reserved.reduce((sum, count) => sum + count, 0)
    assert.ok(total <= 16_384 + 500, `${total} deliveries`)
    pending.release(total)
    assert.equal(pending.reserve(256), 256)
  })
})

describe('an endpoint', () => {
  const bytesOf = (target: unknown) => (target as Target).key.export().toString('base64')
  const secretOf = ({ secret }: { secret: string }) => secret.slice('whsec_'.length)

  test('is read once for concurrent requests, and its secret is decrypted once in a run', async (t) => {
    const endpoints = [await makeEndpoint(await makeProject()), await makeEndpoint(await makeProject())]
    for (const { project_id } of endpoints) await publishEvents(project_id)
    const runs = await claimOf(endpoints)
    const targets = new Targets(mail, api.context.vault)
    const lookUp = () => Promise.all([...runs, ...runs, ...runs].map((queue) => targets.of(queue)))
    const statements = recordStatements(t)
    for (const decryptions of [1, 0]) {
      statements.reset()
      const found = await lookUp()
      assert.deepEqual(found.map(bytesOf), [...endpoints, ...endpoints, ...endpoints].map(secretOf))
      assert.equal(statements.about('control.endpoints'), 1)
      assert.equal(statements.about('"control"."project_keys"'), decryptions)
    }
  })

  test('is read again for the next request: its secret, its URL and its state', async () => {
    const endpoint = await makeEndpoint(await makeProject())
    await publishEvents(endpoint.project_id)
    const [queue = assert.fail()] = await claimOf([endpoint])
    const targets = new Targets(mail, api.context.vault)
    assert.equal(bytesOf(await targets.of(queue)), secretOf(endpoint))
    const token = await api.tokenOf((await api.makeAdmin()).email)
    const at = `/v1/admin/projects/${endpoint.project_id}/endpoints/${endpoint.id}/rotate`
    const answer = await fetch(new URL(at, api.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ reason: 'It leaked.' }),
    })
    const rotated = (await answer.json()) as { secret: string }
    assert.equal(bytesOf(await targets.of(queue)), secretOf(rotated))
    await database.query(`update control.endpoints set url = 'https://b.example/x?y=1' where id = $1`, [
      endpoint.id,
    ])
    const { origin, path } = (await targets.of(queue)) as Target
    assert.deepEqual([origin, path], ['https://b.example', '/x?y=1'])
    await database.query('update control.endpoints set is_active = false where id = $1', [endpoint.id])
    assert.equal(await targets.of(queue), 'inactive')
    await database.query('delete from control.endpoints where id = $1', [endpoint.id])
    assert.equal(await targets.of(queue), 'gone')
  })
})

describe('a hundred results', () => {
  test('of two endpoints are recorded with two statements in one transaction', async (t) => {
    const endpoints = [await makeEndpoint(await makeProject()), await makeEndpoint(await makeProject())]
    const ids: string[][] = []
    for (const { project_id } of endpoints) ids.push(await publishEvents(project_id, 50))
    const runs = await claimOf(endpoints)
    const resultOf = (event_id: string): Result => ({
      ...{ event_id, event_type: 'message.delivered', attempt: 1, outcome: 'delivered', status: 200 },
      ...{ latencyMs: 1, response: '', error: null, retryMs: null, startedAt: performance.now() },
    })
    const batch = runs.flatMap((queue, index) =>
      (ids[index] ?? []).map((id) => ({ queue, results: [resultOf(id)], hasSucceeded: false })),
    )
    assert.equal(batch.length, 100)
    const statements = recordStatements(t)
    await mail.transaction((tx) => writeDeliveryResults(tx, batch))
    assert.equal(statements.about('mail.endpoint_queues'), 1)
    assert.equal(statements.about('mail.deliveries'), 1)
    for (const endpoint of endpoints) {
      assert.equal(await stage.waitingFor(endpoint), 0)
      assert.equal((await stage.attemptsOf(endpoint)).length, 50)
    }
  })
})
