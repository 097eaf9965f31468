import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { purgeLookups } from '../../core/control/audit/lookups.ts'
import { assertEachRowOnce, assertStrictPaging, readAllPages } from '../../testing/expectations/pages.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const other = await signedIn(api)

/** Adds lookups by user 0. */
async function addMany(count: number, daysAgo = 0): Promise<number[]> {
  const rows = await database.query<{ id: string }>(
    `insert into control.lookups (actor_id, operation, question, project_ids, request_id, created_at)
     select 0, 'trace.find', 'message x', '{}', 'bulk', postern.now() - $2 * interval '1 day'
       from generate_series(1, $1) returning id`,
    [count, daysAgo],
  )
  return rows.map(({ id }) => Number(id)).sort((a, b) => b - a)
}

describe('audit.lookups', () => {
  test('returns who asked what, newest first', async () => {
    const searched = await admin.get('/messages?recipient=a@example.net')
    const traced = await other.post('/trace', { text: 'queued as 4XbW5L3zqT' })
    const { body } = await admin.get('/audit/lookups')
    const rows = body.data.map(({ id, created_at, ...lookup }: { id: number; created_at: string }) => {
      assert.match(`${id} ${created_at}`, /^\d+ \d{4}-.*Z$/)
      return lookup
    })
    assert.deepEqual(rows, [
      {
        actor_id: other.userId,
        operation: 'trace.find',
        question: 'queue id 4XbW5L3zqT',
        project_ids: [],
        request_id: traced.headers.get('x-request-id'),
      },
      {
        actor_id: admin.userId,
        operation: 'messages.search',
        question: 'recipient a@example.net',
        project_ids: [],
        request_id: searched.headers.get('x-request-id'),
      },
    ])
    const own = await readAllPages<{ id: number; actor_id: number }>(admin, '/audit/lookups', {
      actor: String(other.userId),
    })
    assert.deepEqual(
      own.map(({ actor_id }) => actor_id),
      [other.userId],
    )
  })

  test('shortens a long question', async () => {
    const ids = Array.from({ length: 40 }, (_none, n) => `0199000a-0000-7000-8000-0000000000${10 + n}`)
    await admin.post('/trace', { text: ids.join(' ') })
    const [{ question }] = (await admin.get('/audit/lookups?limit=1')).body.data
    assert.ok(question.length <= 500)
    assert.ok(question.endsWith('…'))
  })

  test('returns each row once for any page size while rows are added', async () => {
    const ids = await addMany(250)
    await assertEachRowOnce(admin, '/audit/lookups', ids, () => addMany(1), { actor: '0' })
  })

  test('are deleted after 90 days', async () => {
    const [old = 0] = await addMany(1, 91)
    const [kept = 0] = await addMany(1, 89)
    assert.equal(await api.context.db.admin.transaction(purgeLookups), 1)
    const left = await database.query<{ id: string }>('select id from control.lookups where id = any($1)', [
      [old, kept],
    ])
    assert.deepEqual(left, [{ id: String(kept) }])
  })

  test('rejects invalid cursors, limits and filters', async () => {
    const [lastId = 0] = await addMany(1)
    await assertStrictPaging(admin, '/audit/lookups', lastId)
    for (const query of ['actor=me', 'actor=-1', 'actor_id=1'])
      assertProblem(await admin.get(`/audit/lookups?${query}`), 400, 'invalid_parameter')
  })
})
