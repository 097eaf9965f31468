import assert from 'node:assert/strict'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { untilReauthenticationIsDue } from '../../testing/harness/late-body.ts'
import { holdingBack } from '../../testing/harness/lock-queue.ts'

/** Permissions are checked before the body is read, and a body can arrive slowly. */
const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)

/** Sends the head of a request now; the returned function sends the body and returns the response. */
async function sendHead(
  t: TestContext,
  method: string,
  path: string,
  headers: object,
): Promise<(body: object) => Promise<{ status: number; body: string }>> {
  const sent = request(`${api.url}/v1/admin${path}`, {
    method,
    headers: { ...headers, 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
  })
  const answer = new Promise<{ status: number; body: string }>((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', async (response) =>
      resolve({ status: response.statusCode ?? 0, body: await text(response) }),
    )
  })
  await untilReauthenticationIsDue(t, () => sent.flushHeaders())
  return (body) => {
    sent.end(JSON.stringify(body))
    return answer
  }
}

const comeBack = { role: 'admin', is_active: true, reason: 'I am back' }
const out = { role: 'user', is_active: false, end_sessions: true, reason: 'Left the company' }

const roleOf = async (id: number) =>
  (
    await database.query<{ role: string; is_active: boolean }>(
      'select role, is_active from control.users where id = $1',
      [id],
    )
  )[0]

describe('an administrator who loses the role or rights before the body arrives', () => {
  test('is rejected, and cannot restore the lost role', async (t) => {
    const leaver = await signedIn(api)
    const finish = await sendHead(t, 'PATCH', `/users/${leaver.userId}`, leaver.headers)
    assert.equal((await admin.patch(`/users/${leaver.userId}`, out)).status, 200)
    assert.equal((await finish(comeBack)).status, 401)
    assert.deepEqual(await roleOf(leaver.userId), { role: 'user', is_active: false })
  })

  test('is also rejected under the lock if the role was lost just before', async () => {
    const leaver = await signedIn(api)
    const answer = await holdingBack(
      database,
      `update control.users set role = 'user' where id = ${leaver.userId}`,
      () => leaver.patch(`/users/${leaver.userId}`, comeBack),
    )
    assert.deepEqual([answer.status, answer.body.error], [403, 'admin_required'])
    assert.equal((await roleOf(leaver.userId))?.role, 'user')
  })

  test('is rejected if the rights were lowered', async (t) => {
    const { id } = await fixtures(database, admin).makeProject()
    const limited = await signedIn(api)
    const finish = await sendHead(t, 'PATCH', `/projects/${id}`, limited.headers)
    const lower = { rights: 'support', reason: 'Moved to support' }
    assert.equal((await admin.patch(`/users/${limited.userId}`, lower)).status, 200)
    const { status, body } = await finish({ name: 'Renamed' })
    assert.deepEqual([status, JSON.parse(body).error], [403, 'insufficient_rights'])
  })

  test('is rejected under the lock if the rights were lowered just before', async () => {
    const limited = await signedIn(api)
    const answer = await holdingBack(
      database,
      `update control.users set rights = 'support' where id = ${limited.userId}`,
      () => limited.patch(`/users/${limited.userId}`, { rights: 'full', reason: 'I am back' }),
    )
    assert.deepEqual([answer.status, answer.body.error], [403, 'insufficient_rights'])
  })

  test('is served normally if the role was kept', async (t) => {
    const slow = await signedIn(api)
    const finish = await sendHead(t, 'PATCH', `/users/${slow.userId}`, slow.headers)
    assert.equal((await finish({ end_sessions: true, reason: 'Lost my laptop' })).status, 200)
  })
})
