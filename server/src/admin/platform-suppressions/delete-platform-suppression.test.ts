import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { suppressComplained } from '../../core/mail/suppressions/automatic.ts'
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
const { assertAudited } = auditOf(database, admin)
const reason = 'The recipient has withdrawn the demand'

describe('platform-suppressions.delete', () => {
  test('lets projects send to the address again, unless they have suppressed it themselves', async () => {
    const [free, own] = [await makeSender(), await makeSender()]
    await admin.post('/suppressions', { address: 'ada@example.net', reason: 'Needed' })
    const complaint = {
      ...{ projectId: own.id, recipient: 'ada@example.net' },
      messageId: '0198f2a4-7777-7000-8000-000000000001',
    }
    await api.context.cells.all[0].mail.transaction((tx) => suppressComplained(tx, [complaint]))
    const answer = await admin.delete('/suppressions/ADA@example.net', { reason })
    assert.deepEqual([answer.status, answer.body.address], [200, 'ada@example.net'])
    await assertAudited(answer, {
      operation: 'platform-suppressions.delete',
      resource: ['platform_suppression', 0],
      reason,
      before: { reason: 'Needed' },
      subject: { email: 'ada@example.net', name: null },
    })
    const statusOf = async ({ send, program }: typeof free) =>
      (await program.get(`/messages/${await send({ to: ['ada@example.net'] })}`)).body.status
    assert.deepEqual([await statusOf(free), await statusOf(own)], ['queued', 'suppressed'])
  })

  test('returns 404 for an address that is not on the list', async () => {
    for (const address of ['nobody@example.net', 'x', '%20'])
      assertProblem(await admin.delete(`/suppressions/${address}`, { reason }), 404, 'not_found')
  })
})
