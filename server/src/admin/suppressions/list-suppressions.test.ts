import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { assertShape, type Shape } from '../../testing/expectations/shape.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { mailRows } from '../../testing/fixtures/mail-rows.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)
const { makeMail } = mailRows(database)

const suppression: Shape = [
  ['address', 'string'],
  ['reason', 'string'],
  ['message_id', 'string'],
  ['created_at', 'timestamp'],
]

const suppress = (projectId: number, address: string, reason = 'manual', messageId: string | null = null) =>
  database.query(
    'insert into mail.suppressions (project_id, address, reason, message_id) values ($1, $2, $3, $4)',
    [projectId, address, reason, messageId],
  )

describe('suppressions.list', () => {
  test("returns one project's addresses with reason and source", async () => {
    const [{ id }, other] = [await makeProject(), await makeProject()]
    const { messageId } = await makeMail(id, { status: 'bounced' })
    await suppress(id, 'b@example.net', 'bounce', messageId)
    await suppress(id, 'a@example.net')
    await suppress(id, 'c@example.net', 'complaint', messageId)
    await suppress(other.id, 'd@example.net')
    const { status, body } = await admin.get(`/projects/${id}/suppressions`)
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body), ['data', 'next_cursor'])
    assert.deepEqual(
      body.data.map((one: Record<string, unknown>) => [one['address'], one['reason'], one['message_id']]),
      [
        ['a@example.net', 'manual', null],
        ['b@example.net', 'bounce', messageId],
        ['c@example.net', 'complaint', messageId],
      ],
    )
    for (const one of body.data) assertShape(one, suppression, one.message_id === null ? ['message_id'] : [])
  })

  test('returns each address once at any page size', async () => {
    const { id } = await makeProject()
    const addresses = Array.from({ length: 23 }, (_, n) => `p${String(n).padStart(2, '0')}@example.net`)
    for (const address of [...addresses, 'грета@example.net']) await suppress(id, address)
    for (const limit of [1, 7, 23, 24, 25]) {
      const seen: string[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const next = cursor === '' ? '' : `&cursor=${cursor}`
        const { body } = await admin.get(`/projects/${id}/suppressions?limit=${limit}${next}`)
        assert.ok(body.data.length <= limit)
        seen.push(...body.data.map(({ address }: { address: string }) => address))
        cursor = body.next_cursor
      }
      assert.deepEqual(seen, [...addresses, 'грета@example.net'], `by ${limit}`)
    }
  })

  test('rejects invalid cursors, and returns 404 for a missing project', async () => {
    const { id } = await makeProject()
    for (const query of ['cursor=x', 'cursor=', 'limit=0', 'q=a', 'address=a@example.net']) {
      assertProblem(await admin.get(`/projects/${id}/suppressions?${query}`), 400, 'invalid_parameter')
    }
    assertProblem(await admin.get('/projects/999999999/suppressions'), 404, 'not_found')
  })
})
