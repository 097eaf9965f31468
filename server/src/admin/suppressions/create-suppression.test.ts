import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { relayToMail } from '../../core/outbox/relay-to-mail.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database, { POSTERN_MAX_SUPPRESSIONS: '2' })
const admin = await signedIn(api)
const { makeSender } = senders(api, database, admin)
const { assertAudited, assertNotAudited } = auditOf(database, admin)

const reason = 'The recipient wrote to us, ticket 4711'

const listOf = async (projectId: number): Promise<Record<string, unknown>[]> =>
  (await admin.get(`/projects/${projectId}/suppressions`)).body.data
/** Runs the relay, as a worker does about once per second. */
const apply = () => relayToMail({ db: api.context.db.admin, mailDb: api.context.cells.all[0].mail })
const create = (projectId: number, address: string, more: object = { reason }) =>
  admin.post(`/projects/${projectId}/suppressions`, { address, ...more })

describe('suppressions.create', () => {
  test('stops the project from sending to the address, and records it without the address', async () => {
    const { id, send, program } = await makeSender()
    const answer = await create(id, 'Ada@Example.net')
    assert.equal(answer.status, 202, answer.text)
    assert.deepEqual([answer.body.address, answer.body.reason], ['ada@example.net', 'manual'])
    await assertAudited(answer, {
      operation: 'suppressions.create',
      project_id: id,
      resource: ['suppression', id],
      reason,
      after: { reason: 'manual' },
      subject: { email: 'ada@example.net', name: null },
    })
    assert.deepEqual(await listOf(id), [])
    await apply()
    assert.deepEqual(await listOf(id), [answer.body])
    const message = await send({ to: ['ada@example.net'] })
    assert.equal((await program.get(`/messages/${message}`)).body.status, 'suppressed')
  })

  test('returns an existing suppression unchanged, in any spelling', async () => {
    const { id } = await makeSender()
    await database.query(
      `insert into mail.suppressions (project_id, address, reason) values ($1, 'ada@example.net', 'complaint')`,
      [id],
    )
    const answer = await create(id, 'ADA@example.net')
    assert.equal(answer.status, 202, answer.text)
    assert.deepEqual([answer.body], await listOf(id))
    await assertNotAudited(answer)
    await apply()
    assert.equal((await listOf(id))[0]?.['reason'], 'complaint')
  })

  test('keeps a complaint that arrives before the worker adds the suppression', async () => {
    const { id } = await makeSender()
    await create(id, 'ada@example.net')
    await database.query(
      `insert into mail.suppressions (project_id, address, reason) values ($1, 'ada@example.net', 'complaint')`,
      [id],
    )
    await apply()
    assert.deepEqual(
      (await listOf(id)).map((one) => one['reason']),
      ['complaint'],
    )
  })

  test('can exceed max_suppressions, with a record of it', async () => {
    const { id } = await makeSender()
    for (const address of ['a@example.net', 'b@example.net']) await create(id, address)
    await apply()
    const preview = await admin.post(`/projects/${id}/suppressions?dry_run=true`, {
      address: 'c@example.net',
    })
    assert.equal(preview.status, 200, preview.text)
    assert.match(preview.body.warnings[0], /max_suppressions: 3 of 2/)
    const answer = await create(id, 'c@example.net')
    assert.equal(answer.status, 202, answer.text)
    const [row] = (await admin.get(`/audit?project_id=${id}&limit=1`)).body.data
    assert.deepEqual(row.limit_exception, { limit: 'max_suppressions', value: 2, count: 3 })
  })

  test('rejects an invalid address, and 404 for a missing project comes first', async () => {
    const { id } = await makeSender()
    for (const address of ['', 'x', 'a@b', 'Ada <ada@example.net>', 'a@example.net\n'])
      assertProblem(await create(id, address), 422, 'validation_failed')
    assertProblem(await create(999999999, 'x'), 404, 'not_found')
    assertProblem(await create(id, 'ada@example.net', {}), 422, 'reason_required')
  })
})
