import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { type Answer, signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeUser, makePlan, makeProject } = fixtures(database, admin)

/** The id of the request's row, and the hash of the previous row in the chain. */
async function rowOf({ headers }: Answer): Promise<{ id: number; previous: string | null }> {
  const [row] = await database.query<{ id: string; previous: string | null }>(
    `select id, (select encode(hash, 'hex') from control.audit as other
                  where other.chain = audit.chain and other.seq = audit.seq - 1) as previous
       from control.audit where request_id = $1`,
    [headers.get('x-request-id')],
  )
  return { id: Number(row?.id), previous: row?.previous ?? null }
}

describe('audit.show', () => {
  test('returns actor, time, reason, change, subject and position in the chain', async () => {
    const plan = await makePlan({ max_users: 1 })
    const project = await makeProject({ plan_id: plan.id })
    const user = await makeUser()
    const done = await admin.post(`/projects/${project.id}/members`, {
      email: user.email,
      role: 'viewer',
      reason: 'Agreed with sales',
    })
    const { id, previous } = await rowOf(done)
    const answer = await admin.get(`/audit/${id}`)
    assert.equal(answer.status, 200, answer.text)
    const { at, hash } = answer.body
    assert.deepEqual(answer.body, {
      id,
      chain: project.id,
      seq: 2,
      at,
      actor_kind: 'person',
      actor: { id: admin.userId, email: admin.email, ip: '127.0.0.1', user_agent: 'node' },
      request_id: done.headers.get('x-request-id'),
      operation: 'members.create',
      project_id: project.id,
      resource_type: 'member',
      resource_id: String(done.body.id),
      reason: 'Agreed with sales',
      before: null,
      after: { user_id: user.id, role: 'viewer' },
      related: [],
      limit_exception: { limit: 'max_users', value: 1, count: 2 },
      bulk_id: null,
      subject: { email: user.email, name: user.name },
      prev_hash: previous,
      hash,
    })
    assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.match(hash, /^[0-9a-f]{64}$/)
  })

  test('returns related resources, and null for absent values', async () => {
    const done = await admin.post('/projects', {
      name: 'Acme',
      user_id: (await makeUser()).id,
      plan_id: (await makePlan()).id,
    })
    const { body } = await admin.get(`/audit/${(await rowOf(done)).id}`)
    assert.equal(body.seq, 1)
    assert.equal(body.prev_hash, '0'.repeat(64))
    assert.equal(body.related.length, 1)
    assert.deepEqual([body.reason, body.before, body.limit_exception, body.subject], [null, null, null, null])
  })

  test('returns the entry without the personal data of an erased person', async () => {
    const user = await makeUser()
    const done = await admin.patch(`/users/${user.id}`, { role: 'admin', reason: 'New colleague' })
    const { id } = await rowOf(done)
    const { body: before } = await admin.get(`/audit/${id}`)
    assert.deepEqual(before.subject, { email: user.email, name: user.name })
    await database.query('delete from control.audit_people where audit_id = $1', [id])
    assert.deepEqual((await admin.get(`/audit/${id}`)).body, {
      ...before,
      actor: { id: admin.userId, email: null, ip: null, user_agent: null },
      subject: null,
    })
  })

  test('returns 404 for a missing entry and 400 for an invalid id', async () => {
    assertProblem(await admin.get('/audit/999999999'), 404, 'not_found')
    assertProblem(await admin.get('/audit/0'), 404, 'not_found')
    for (const id of ['-1', '01', 'latest', '9007199254740992']) {
      assertProblem(await admin.get(`/audit/${id}`), 400, 'invalid_parameter')
    }
  })
})
