import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { bareEnvironment, callPostern } from '../testing/harness/postern-process.ts'
import { patienceMs } from '../testing/harness/waiting.ts'

/** How many more times the API reports that it is not ready. */
let refusals = 0
const api = http.createServer((request, response) => {
  response.statusCode = request.url !== '/readyz' ? 404 : refusals > 0 ? 503 : 200
  if (refusals > 0) refusals--
  response.end()
})
api.listen(0, '127.0.0.1')
await once(api, 'listening')
cleanUp(async () => api.close())

// The API listens on all addresses, so a local address is used. No secret is set, and none is needed.
const env = {
  ...bareEnvironment,
  POSTERN_HTTP_HOST: '0.0.0.0',
  POSTERN_HTTP_PORT: String((api.address() as AddressInfo).port),
}

describe('postern health', () => {
  it('reports that the API is ready', async () => {
    assert.deepEqual(await callPostern(env, 'health'), { status: 0, stdout: 'ready\n', stderr: '' })
  })

  it('reports why the API is not ready', async () => {
    refusals = 1
    const answer = await callPostern(env, 'health')
    assert.equal(answer.status, 1)
    assert.match(answer.stdout, /^not ready: http:\S+\/readyz returned 503$/m)
    const unreachable = await callPostern({ ...env, POSTERN_HTTP_PORT: '1' }, 'health')
    assert.equal(unreachable.status, 1)
    assert.match(unreachable.stdout, /no response from/)
  })

  it('waits until the API is ready', async () => {
    refusals = 3
    assert.equal((await callPostern(env, 'health', '--wait', String(patienceMs / 1000))).status, 0)
    assert.equal(refusals, 0)
    assert.equal((await callPostern(env, 'health', '--wait', 'long')).status, 2)
  })
})
