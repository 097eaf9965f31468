import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { describe, test } from 'node:test'
import { maxFiles, maxFilesOfRequester } from '../../core/control/evidence/evidence.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { evidenceFixtures } from '../../testing/fixtures/evidence.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject, makeHistory, request, run, show } = evidenceFixtures(database, admin)
const range = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' }
const lookups = () =>
  database.query<{ actor_id: number; operation: string; question: string; project_ids: number[] }>(
    `select actor_id::int, operation, question, project_ids::int[] from control.lookups order by id`,
  )

describe('evidence.create', () => {
  test('writes no audit row, and records who asked for what', async () => {
    const { id, path, messageId } = await makeHistory()
    const [before] = await database.query('select count(*) from control.audit')
    const { status, body } = await admin.post(`${path}/evidence`, { ...range, message_ids: [messageId] })
    assert.deepEqual([status, Object.keys(body)], [202, ['id']])
    assert.deepEqual((await database.query('select count(*) from control.audit'))[0], before)
    assert.deepEqual((await lookups()).at(-1), {
      actor_id: admin.userId,
      operation: 'evidence.create',
      question: `evidence ${body.id}: ${range.from} to ${range.to} ${messageId}`,
      project_ids: [id],
    })
    const shown = await show(path, body.id)
    assert.deepEqual(
      [shown.from, shown.to, shown.message_ids, shown.requested_by],
      [
        '2026-01-01T00:00:00.000Z',
        '2026-01-02T00:00:00.000Z',
        [messageId],
        { id: admin.userId, email: admin.email },
      ],
    )
    assert.equal(Date.parse(shown.expires_at) - Date.parse(shown.created_at), 7 * 24 * 3_600_000)
  })

  test('rejects a reason, a dry run, and messages of other projects', async () => {
    const { path, messageId } = await makeHistory()
    const other = await makeHistory()
    const send = (body: object, query = '') => admin.post(`${path}/evidence${query}`, body)
    assertProblem(await send({ ...range, reason: 'Asked' }), 422, 'validation_failed')
    assertProblem(await send(range, '?dry_run=true'), 400, 'invalid_parameter')
    for (const absent of [other.messageId, randomUUIDv7()]) {
      const answer = await send({ ...range, message_ids: [messageId, absent] })
      assertProblem(answer, 422, 'validation_failed')
      assert.match(answer.body.message, new RegExp(`There is no message ${absent}`))
    }
    const many = Array.from({ length: 101 }, () => randomUUIDv7())
    assertProblem(await send({ ...range, message_ids: many }), 422, 'validation_failed')
    assert.equal((await admin.get(`${path}/evidence`)).body.data.length, 0)
  })

  test('rejects a range that is empty, in the future or longer than 366 days', async () => {
    const { id } = await makeProject()
    for (const [from, to] of [
      [range.to, range.from],
      [range.to, range.to],
      ['2999-01-01T00:00:00Z', '2999-01-02T00:00:00Z'],
      ['2024-01-01T00:00:00Z', '2025-06-01T00:00:00Z'],
      ['2024-02-30T00:00:00Z', '2024-03-01T00:00:00Z'],
    ]) {
      assertProblem(await admin.post(`/projects/${id}/evidence`, { from, to }), 422, 'validation_failed')
    }
  })

  test('ends the range at the time of the request', async () => {
    const { id } = await makeProject()
    const path = `/projects/${id}`
    const shown = await show(path, await request(path))
    assert.ok(Date.parse(shown.to) <= Date.parse(shown.created_at) + 1, shown.to)
  })

  test(`allows ${maxFilesOfRequester} files of each administrator, in all projects`, async () => {
    const auditor = await signedIn(api, 'auditor')
    const projects = await Promise.all([1, 2, 3].map(() => makeProject()))
    await database.query(
      `insert into control.evidence (project_id, requested_by, range_from, range_to, message_ids)
       select $1, $2, now() - interval '1 day', now(), '{}' from generate_series(1, $3::int)`,
      [projects[0]?.id, auditor.userId, maxFilesOfRequester - 1],
    )
    const paths = projects.slice(1).map(({ id }) => `/projects/${id}/evidence`)
    const answers = await Promise.all(paths.map((path) => auditor.post(path, range)))
    const [made, refused] = answers.toSorted((one, other) => one.status - other.status)
    assert.equal(made?.status, 202)
    assertProblem(refused ?? assert.fail(), 422, 'limit_exceeded')
    assert.equal((await admin.post(paths[0] ?? '', range)).status, 202)
    await database.query('delete from control.evidence where requested_by = $1', [auditor.userId])
  })

  test(`allows ${maxFiles} files in each project`, async () => {
    const { id } = await makeProject()
    const path = `/projects/${id}/evidence`
    const answers = await Promise.all(Array.from({ length: maxFiles + 3 }, () => admin.post(path, range)))
    const refused = answers.filter(({ status }) => status !== 202)
    assert.equal(refused.length, 3)
    for (const answer of refused) assertProblem(answer, 422, 'limit_exceeded')
  })
})

describe('evidence.download', () => {
  test('returns 404 until the file is ready, and records each download', async () => {
    const { path, id } = await makeHistory()
    const evidence = await request(path)
    const file = `${path}/evidence/${evidence}/file`
    const early = await admin.get(file)
    assertProblem(early, 404, 'not_found')
    assert.match(early.body.message, /is not ready \(queued\)/)
    await run()
    const before = (await lookups()).length
    const { status, headers } = await admin.get(file)
    assert.deepEqual([status, headers.get('content-type')], [200, 'application/x-ndjson'])
    const recorded = (await lookups()).slice(before)
    assert.deepEqual(recorded, [
      {
        actor_id: admin.userId,
        operation: 'evidence.download',
        question: `evidence ${evidence}`,
        project_ids: [id],
      },
    ])
    const other = await makeProject()
    assertProblem(await admin.get(`/projects/${other.id}/evidence/${evidence}/file`), 404, 'not_found')
  })
})
