import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { testDatabase } from '../testing/harness/database.ts'
import { bareEnvironment, type PosternProcess, startPostern } from '../testing/harness/postern-process.ts'

/** The metrics listener of each serving process. It is separate from the public port. */
const database = await testDatabase()
const env = {
  ...bareEnvironment,
  POSTERN_DATABASE_URL: database.url,
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_HTTP_PORT: '0',
  POSTERN_BOUNCE_PORT: '0',
  POSTERN_METRICS_PORT: '0',
  POSTERN_AUTH_SECRETS: `1:${'secret-of-the-metrics-test-'.repeat(2)}`,
  POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
}

const [api, worker, intake] = await Promise.all([
  startPostern('api', env, ['serving', 'serving metrics']),
  startPostern('worker', env, ['working', 'serving metrics']),
  startPostern('intake', env, ['listening for bounces', 'serving metrics']),
])

function listenerOf({ lines }: PosternProcess): string {
  const { host, port } = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'serving metrics')
  assert.equal(host, '127.0.0.1')
  return `http://${host}:${port}`
}

const textOf = async (url: string) => {
  const answer = await fetch(url)
  return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() }
}

describe('a serving process', () => {
  for (const [name, running] of Object.entries({ api, worker, intake })) {
    test(`shows metrics and health: ${name}`, async () => {
      const url = listenerOf(running)
      assert.deepEqual(await textOf(`${url}/healthz`), {
        ...{ status: 200, type: 'application/json; charset=utf-8', text: '{"status":"ok"}' },
      })
      assert.equal((await textOf(`${url}/readyz`)).text, '{"status":"ready"}')
      const { status, type, text } = await textOf(`${url}/metrics`)
      assert.equal(status, 200)
      assert.match(type ?? '', /^text\/plain; version=0\.0\.4/)
      assert.match(text, /^postern_build_info\{version="[^"]+",node="v24[^"]*"\} 1$/m)
      assert.match(text, /^process_start_time_seconds \d+$/m)
      assert.match(text, /^nodejs_eventloop_lag_p99_seconds /m)
      assert.equal((await textOf(`${url}/v1/admin/projects`)).status, 404)
      assert.equal((await fetch(`${url}/metrics`, { method: 'POST' })).status, 404)
    })
  }

  test('exports queue metrics only if it is a worker', async () => {
    const standing = async (running: PosternProcess) =>
      /^postern_queue_metrics_up (.*)$/m.exec((await textOf(`${listenerOf(running)}/metrics`)).text)?.[1]
    assert.deepEqual(
      [await standing(worker), await standing(api), await standing(intake)],
      ['1', undefined, undefined],
    )
  })

  test('serves no metrics on the public port', async () => {
    assert.equal((await textOf(`${api.url}/metrics`)).status, 404)
  })

  test('is not ready while a migration is missing', async () => {
    await database.query('alter table postern.migrations rename to elsewhere')
    for (const running of [worker, intake]) {
      const { status, text } = await textOf(`${listenerOf(running)}/readyz`)
      assert.equal(status, 503)
      assert.equal(JSON.parse(text).error, 'unavailable')
    }
  })
})
