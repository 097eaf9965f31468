import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { coveredMutations } from '../../testing/fuzz/acts.ts'
import { ServedDocument } from '../../testing/fuzz/document.ts'
import { run } from '../../testing/fuzz/run.ts'
import { startService } from '../../testing/fuzz/service.ts'
import { setUpRun } from '../../testing/fuzz/setup.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { seed } from '../../testing/harness/random.ts'

/**
 * Requests generated from the OpenAPI document: valid ones, requests with one fault, hostile ones, and sequences
 * against a model of the service. `npm run prove:requests` generates a million of them.
 */
const requests = Number(process.env['POSTERN_TEST_REQUESTS'] ?? 1_500)
const part = process.env['POSTERN_TEST_PART']
const database = await testDatabase()
const service = await startService(database)

describe('requests generated from the OpenAPI document', () => {
  test('are modelled for every administrative mutation of the document', async () => {
    const document = new ServedDocument(await (await fetch(`${service.url}/openapi.json`)).text())
    const mutations = document.operations.filter(
      ({ path, method }) => path.startsWith('/v1/admin/') && method !== 'GET',
    )
    const unknown = mutations.map(({ id }) => id).filter((id) => !coveredMutations.includes(id))
    assert.deepEqual(unknown, [], 'missing in the model: see testing/fuzz/acts.ts')
  })

  test(`get responses that match the document and a model of the service (seed ${seed})`, async (t) => {
    const { context, schemaRequests, projectId, stop } = await setUpRun(service, database)
    const { tally } = context
    const only = part === undefined ? undefined : Number(part)
    const failures = await run(context, { seed, requests, only, schemaRequests, projectId }).finally(stop)
    t.diagnostic(`${tally.requests} requests`)
    for (const line of tally.lines()) t.diagnostic(line)
    t.diagnostic(tally.summary())
    const errors = (await service.log()).split('\n').filter((line) => /"level":"(?:error|fatal)"/.test(line))
    assert.ok(failures.length === 0, [...failures, ...errors.slice(0, 3)].join('\n\n===\n\n'))
    assert.deepEqual(errors, [], 'the service reported an unexpected error')
    const unasked = context.document.operations.map(({ id }) => id).filter((id) => !tally.hasResponse(id))
    // A small number of requests may miss an operation.
    if (tally.requests >= 50_000) assert.deepEqual(unasked, [], 'some operations were never called')
    const headers = { authorization: `Bearer ${context.token()}` }
    const verified = await (await fetch(`${service.url}/v1/admin/audit/verify`, { headers })).json()
    assert.equal((verified as { ok: boolean }).ok, true, JSON.stringify(verified))
  })
})
