import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { known } from '../../testing/fuzz/acts.ts'
import { ServedDocument } from '../../testing/fuzz/document.ts'
import { run } from '../../testing/fuzz/run.ts'
import { startService } from '../../testing/fuzz/service.ts'
import { setStage } from '../../testing/fuzz/stage.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { seed } from '../../testing/harness/random.ts'

/**
 * Requests made from the OpenAPI document: valid ones, such as are wrong in one way, hostile ones, and sequences
 * against a model of the service. `npm run prove:requests` makes a million of them.
 */
const requests = Number(process.env['POSTERN_TEST_REQUESTS'] ?? 1_500)
const part = process.env['POSTERN_TEST_PART']
const database = await testDatabase()
const service = await startService(database)

describe('requests made from the OpenAPI document', () => {
  test('are foretold for every administrative mutation that the document has', async () => {
    const document = new ServedDocument(await (await fetch(`${service.url}/openapi.json`)).text())
    const mutations = document.operations.filter(
      ({ path, method }) => path.startsWith('/v1/admin/') && method !== 'GET',
    )
    const unknown = mutations.map(({ id }) => id).filter((id) => !known.includes(id))
    assert.deepEqual(unknown, [], 'the model does not know these: see testing/fuzz/acts.ts')
  })

  test(`are answered as it says and as a model of the service foresees (seed ${seed})`, async (t) => {
    const { stage, wild, projectId, stop } = await setStage(service, database)
    const { tally } = stage
    const only = part === undefined ? undefined : Number(part)
    const failures = await run(stage, { seed, requests, only, wild, projectId }).finally(stop)
    t.diagnostic(`${tally.requests} requests`)
    for (const line of tally.lines()) t.diagnostic(line)
    t.diagnostic(tally.verdict())
    const errors = (await service.log()).split('\n').filter((line) => /"level":"(?:error|fatal)"/.test(line))
    assert.ok(failures.length === 0, [...failures, ...errors.slice(0, 3)].join('\n\n===\n\n'))
    assert.deepEqual(errors, [], 'the service has met with something unexpected')
    const unasked = stage.document.operations.map(({ id }) => id).filter((id) => !tally.hasAnswered(id))
    // A small number of requests may pass one by.
    if (tally.requests >= 50_000) assert.deepEqual(unasked, [], 'some operations were never asked for')
    const headers = { authorization: `Bearer ${stage.token()}` }
    const verified = await (await fetch(`${service.url}/v1/admin/audit/verify`, { headers })).json()
    assert.equal((verified as { ok: boolean }).ok, true, JSON.stringify(verified))
  })
})
