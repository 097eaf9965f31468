import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { customers } from '../../testing/fixtures/customers.ts'
import { startApi } from '../../testing/harness/api.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database, { POSTERN_MAX_SUPPRESSIONS: '4' })
const { ownProject, keyOf } = await customers(api, database)

const suppressedIn = (projectId: number) =>
  database.query<{ address: string; reason: string }>(
    'select address, reason from mail.suppressions where project_id = $1 order by address',
    [projectId],
  )

describe('suppressions.import', () => {
  test('suppresses the addresses of a file as manual, and reports each line', async () => {
    const { owner, project } = await ownProject()
    await database.query(
      `insert into mail.suppressions (project_id, address, reason) values ($1, 'old@example.net', 'complaint')`,
      [project.id],
    )
    const csv = 'Email,Reason\nAda@example.net,complaint\nold@example.net,\nada@EXAMPLE.net,\nno address,\n'
    const path = `/projects/${project.id}/suppressions/import`
    const { status, body, text } = await owner.post(path, { csv })
    assert.equal(status, 200, text)
    assert.deepEqual([body.added, body.already_suppressed, body.duplicate, body.invalid], [1, 1, 1, 1])
    assert.deepEqual(
      body.lines.map(({ line, result }: { line: number; result: string }) => [line, result]),
      [
        [2, 'added'],
        [3, 'already_suppressed'],
        [4, 'duplicate'],
        [5, 'invalid'],
      ],
    )
    assert.deepEqual(await suppressedIn(project.id), [
      { address: 'ada@example.net', reason: 'manual' },
      { address: 'old@example.net', reason: 'complaint' },
    ])
    const again = await owner.post(path, { csv })
    assert.deepEqual([again.status, again.body.added], [200, 0])
  })

  test('adds nothing if the file exceeds the limit, also with an API key', async () => {
    const { project } = await ownProject()
    const key = await keyOf(project.id, ['suppressions:write'])
    const csv = Array.from({ length: 5 }, (_, no) => `a${no}@example.net`).join('\n')
    assertProblem(await key.post('/suppressions/import', { csv }), 422, 'limit_exceeded')
    assert.deepEqual(await suppressedIn(project.id), [])
    const fitting = await key.post('/suppressions/import', { csv: csv.replace('a4@example.net', '') })
    assert.deepEqual([fitting.status, fitting.body.added], [200, 4])
  })

  test('rejects a file without addresses and one with too many', async () => {
    const { owner, project } = await ownProject()
    const path = `/projects/${project.id}/suppressions/import`
    assertProblem(await owner.post(path, { csv: 'address\n' }), 422, 'validation_failed')
    const csv = Array.from({ length: 10_001 }, (_, no) => `a${no}@example.net`).join('\n')
    assertProblem(await owner.post(path, { csv }), 422, 'validation_failed')
  })
})
