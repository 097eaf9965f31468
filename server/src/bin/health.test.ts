import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { cleanUp } from '../testing/cleanup.ts'
import { bareEnvironment, callPostern } from '../testing/postern-process.ts'

/** An API that is ready when a test says so. */
let status = 200
const api = http.createServer((request, response) => {
  response.statusCode = request.url === '/readyz' ? status : 404
  response.end()
})
api.listen(0, '127.0.0.1')
await once(api, 'listening')
cleanUp(async () => api.close())

// It listens everywhere, so it is asked nearby. No secret is set, and none is missed.
const env = {
  ...bareEnvironment,
  POSTERN_HTTP_HOST: '0.0.0.0',
  POSTERN_HTTP_PORT: String((api.address() as AddressInfo).port),
}

describe('postern health', () => {
  it('says that the API is ready', async () => {
    status = 200
    assert.deepEqual(await callPostern(env, 'health'), { status: 0, stdout: 'ready\n', stderr: '' })
  })

  it('says that it is not, and why', async () => {
    status = 503
    const answer = await callPostern(env, 'health')
    assert.equal(answer.status, 1)
    assert.match(answer.stdout, /^not ready: http:\S+\/readyz answers 503$/m)
    const nobody = await callPostern({ ...env, POSTERN_HTTP_PORT: '1' }, 'health')
    assert.equal(nobody.status, 1)
    assert.match(nobody.stdout, /nothing answers/)
  })

  it('waits for it', async () => {
    status = 503
    setTimeout(() => {
      status = 200
    }, 1500)
    assert.equal((await callPostern(env, 'health', '--wait', '30')).status, 0)
    assert.equal((await callPostern(env, 'health', '--wait', 'long')).status, 2)
  })
})
