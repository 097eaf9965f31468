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

  test('contains no formulas, and an import restores the list exactly', async () => {
    const { owner, project } = await ownProject()
    const { owner: other, project: copy } = await ownProject()
    const addresses = [
      ...["=cmd|'/c'!a0@example.net", '+1@example.net', '-1@example.net', "'=1@example.net"],
      ...["'a@example.net", '=ä@example.net', 'a=1@example.net'],
    ].toSorted()
    const path = (id: number) => `/projects/${id}/suppressions`
    for (const address of addresses)
      assert.equal((await owner.post(path(project.id), { address })).status, 201, address)
    const { csv } = (await owner.get(`${path(project.id)}/export`)).body
    const fields = csv.split('\r\n').flatMap((line: string) => line.split(','))
    assert.equal(fields.filter((field: string) => field.startsWith("'")).length, 6)
    for (const field of fields) assert.doesNotMatch(field, /^[=+\-@\t\r]/)
    const { body } = await other.post(`${path(copy.id)}/import`, { csv })
    assert.deepEqual([body.added, body.invalid], [addresses.length, 0])
    const { data } = (await other.get(path(copy.id))).body
    assert.deepEqual(data.map(({ address }: { address: string }) => address).toSorted(), addresses)
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
