import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const { ownProject } = await customers(api, database)

describe('suppressions.export', () => {
  test('returns all addresses as CSV, in parts, which an import accepts', async () => {
    const { owner, project } = await ownProject()
    await database.query(
      `insert into mail.suppressions (project_id, address, reason, created_at)
       select $1, address, 'bounce', '2026-11-14 09:30:00Z'
         from (select 'a' || lpad(no::text, 5, '0') || '@example.net' from generate_series(1, 10001) as no) as made
              (address)`,
      [project.id],
    )
    const path = `/projects/${project.id}/suppressions`
    const parts: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { status, body, text } = await owner.get(`${path}/export${cursor && `?cursor=${cursor}`}`)
      assert.equal(status, 200, text)
      parts.push(body.csv)
      cursor = body.next_cursor
    }
    assert.equal(parts.length, 2)
    const lines = parts.join('').split('\r\n')
    assert.deepEqual(lines.slice(0, 3), [
      'address,reason,created_at',
      'a00001@example.net,bounce,2026-11-14T09:30:00.000Z',
      'a00002@example.net,bounce,2026-11-14T09:30:00.000Z',
    ])
    assert.equal(lines.length, 1 + 10_001 + 1)
    const csv = lines.slice(0, 3).join('\r\n')
    const { body } = await owner.post(`${path}/import`, { csv })
    assert.deepEqual([body.already_suppressed, body.invalid], [2, 0])
  })

  test('rejects invalid cursors, and returns only the header for an empty list', async () => {
    const { owner, project } = await ownProject()
    const path = `/projects/${project.id}/suppressions/export`
    assert.deepEqual((await owner.get(path)).body, {
      csv: 'address,reason,created_at\r\n',
      next_cursor: null,
    })
    assertProblem(await owner.get(`${path}?cursor=x`), 400, 'invalid_parameter')
  })
})
