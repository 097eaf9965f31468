import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { suppressComplained } from '../../core/mail/suppressions/automatic.ts'
import { relayToMail } from '../../core/outbox/relay-to-mail.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { senders } from '../../testing/fixtures/sending-projects.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeSender } = senders(api, database, admin)
const { assertNotAudited } = auditOf(database, admin)

const reason = 'The recipient requested the mail, ticket 4711'
const address = 'ada@example.net'

const suppress = (projectId: number, why = 'complaint') =>
  database.query('insert into mail.suppressions (project_id, address, reason) values ($1, $2, $3)', [
    projectId,
    address,
    why,
  ])
const suppressed = async (projectId: number): Promise<string[]> =>
  (await admin.get(`/projects/${projectId}/suppressions`)).body.data.map(
    (one: { address: string }) => one.address,
  )
/** Runs the relay, as a worker does about once per second. */
const apply = () => relayToMail({ db: api.context.db.admin, mailDb: api.context.cells.all[0].mail })

describe('suppressions.delete', () => {
  test('allows sending to an address that complained, and records it without the address', async () => {
    const { id, send, program } = await makeSender()
    await suppress(id)
    const answer = await admin.delete(`/projects/${id}/suppressions/ADA@example.net`, { reason })
    assert.equal(answer.status, 202, answer.text)
    assert.deepEqual([answer.body.address, answer.body.reason], [address, 'complaint'])
    await apply()
    assert.deepEqual(await suppressed(id), [])
    const message = await send({ to: [address] })
    assert.equal((await program.get(`/messages/${message}`)).body.status, 'queued')

    const { body } = await admin.get(`/audit?operation=suppressions.delete&project_id=${id}`)
    const [row] = body.data
    assert.deepEqual([row.reason, row.before, row.after], [reason, { reason: 'complaint' }, null])
    const chained = await database.query(
      `select from control.audit where project_id = $1 and audit::text like '%ada@example.net%'`,
      [id],
    )
    assert.deepEqual(chained, [], 'the chain has a digest of the address')
  })

  test('requires a reason, and warns in a preview that the recipient complained', async () => {
    const { id } = await makeSender()
    await suppress(id)
    const path = `/projects/${id}/suppressions/${address}`
    const refused = await admin.delete(path, {})
    assertProblem(refused, 422, 'reason_required')
    await assertNotAudited(refused)
    const { status, body } = await admin.delete(`${path}?dry_run=true`)
    assert.equal(status, 200)
    assert.deepEqual(body.warnings, ['The recipient complained about mail from this project.'])
    await apply()
    assert.deepEqual(await suppressed(id), [address])
  })

  test('returns 404 for an address that is not suppressed in the project', async () => {
    const [{ id }, other] = [await makeSender(), await makeSender()]
    await suppress(other.id)
    for (const unknown of [address, 'nobody@example.net', 'x', '%20']) {
      assertProblem(
        await admin.delete(`/projects/${id}/suppressions/${unknown}`, { reason }),
        404,
        'not_found',
      )
    }
    assertProblem(
      await admin.delete(`/projects/999999999/suppressions/${address}`, { reason }),
      404,
      'not_found',
    )
    await apply()
    assert.deepEqual(await suppressed(other.id), [address])
  })

  test('keeps a suppression that was added after the request', async () => {
    const { id } = await makeSender()
    await suppress(id, 'bounce')
    const answer = await admin.delete(`/projects/${id}/suppressions/${address}`, { reason })
    assert.equal(answer.status, 202)
    await database.query('delete from mail.suppressions where project_id = $1', [id])
    await database.query(
      `insert into mail.suppressions (project_id, address, reason, created_at)
       values ($1, $2, 'complaint', postern.now() + interval '1 second')`,
      [id, address],
    )
    await apply()
    assert.deepEqual(await suppressed(id), [address])
  })
  test('keeps a bounce that became a complaint after the request', async () => {
    const { id } = await makeSender()
    await suppress(id, 'bounce')
    assert.equal((await admin.delete(`/projects/${id}/suppressions/${address}`, { reason })).status, 202)
    const complaint = {
      projectId: id,
      messageId: '0198f2a4-7777-7000-8000-000000000001',
      recipient: address,
    }
    await api.context.cells.all[0].mail.transaction((tx) => suppressComplained(tx, [complaint]))
    await apply()
    assert.deepEqual(await suppressed(id), [address])
  })
})
