import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertEachRowOnce, assertStrictPaging, readAllPages } from '../../testing/expectations/pages.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const other = await signedIn(api)

/** Adds one denial for user 0 in each of `count` minutes. */
async function addMany(count: number): Promise<number[]> {
  const rows = await database.query<{ id: string }>(
    `insert into control.denials (minute, actor_id, operation, error, count, last_request_id)
     select date_trunc('minute', postern.now()) - n * interval '1 minute', 0, gen_random_uuid(), 'not_found', 1, 'bulk'
       from generate_series(1, $1) as n returning id`,
    [count],
  )
  return rows.map(({ id }) => Number(id)).sort((a, b) => b - a)
}

describe('denials.list', () => {
  test('returns the user, the operation, the error and the count per minute', async () => {
    const body = { name: 'Acme', user_id: 999_999_999, plan_id: 999_999_999 }
    const refused = await admin.post('/projects', body)
    assertProblem(refused, 422, 'validation_failed')
    const answer = await admin.get('/denials')
    assert.equal(answer.body.data.length, 1)
    const [{ id, minute }] = answer.body.data
    assert.deepEqual(answer.body, {
      data: [
        {
          id,
          minute,
          actor_id: admin.userId,
          operation: 'projects.create',
          error: 'validation_failed',
          project_id: null,
          count: 1,
          last_request_id: refused.headers.get('x-request-id'),
        },
      ],
      next_cursor: null,
    })
    assert.match(minute, /^\d{4}-\d\d-\d\dT\d\d:\d\d:00\.000Z$/)
  })

  test('filters by user, newest first', async () => {
    const refused = await other.patch('/projects/999999999', { name: 'x' })
    await other.delete('/projects/999999999/members/1', { reason: 'Gone' })
    const found = await readAllPages<{ id: number; operation: string; project_id: number }>(
      admin,
      '/denials',
      {
        actor: String(other.userId),
      },
    )
    assertProblem(refused, 404, 'not_found')
    assert.deepEqual(
      found.map(({ operation, project_id }) => [operation, project_id]),
      [
        ['members.delete', 999_999_999],
        ['projects.edit', 999_999_999],
      ],
    )
    assert.deepEqual(await readAllPages(admin, '/denials', { actor: '999999999' }), [])
  })

  test('returns each row once for any page size while rows are added', async () => {
    const ids = await addMany(250)
    await assertEachRowOnce(admin, '/denials', ids, () => addMany(1))
  })

  test('rejects invalid cursors, limits and filters', async () => {
    const [lastId = 0] = await addMany(1)
    await assertStrictPaging(admin, '/denials', lastId)
    for (const query of ['actor=me', 'actor=-1', 'error=not_found']) {
      assertProblem(await admin.get(`/denials?${query}`), 400, 'invalid_parameter')
    }
  })
})
