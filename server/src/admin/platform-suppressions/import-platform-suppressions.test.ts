import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { verifyAudit } from '../../core/control/audit/verify.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { assertNotAudited } = auditOf(database, admin)
const reason = 'List of the legal department'
const csv = [
  'Ada@example.net',
  'grace@example.net,"Wrote to us, ticket 4712"',
  `alan@example.net,${'x'.repeat(501)}`,
  'nonsense',
  'ADA@example.net',
].join('\n')

describe('platform-suppressions.import', () => {
  test('adds the addresses with the reason of their line or of the request, and can be repeated', async () => {
    const rows = await watchRows(database)
    const preview = await admin.post('/suppressions/import?dry_run=true', { csv })
    await rows.assertUntouched()
    const answer = await admin.post('/suppressions/import', { csv, reason })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(preview.body.report, answer.body)
    assert.deepEqual(
      answer.body.lines.map(({ result }: { result: string }) => result),
      ['added', 'added', 'invalid', 'invalid', 'duplicate'],
    )
    assert.equal(answer.body.lines[2].message, '"reason" is longer than 500 characters. Shorten it.')
    const { body } = await admin.get('/suppressions')
    assert.deepEqual(
      body.data.map((one: { address: string; reason: string }) => [one.address, one.reason]),
      [
        ['ada@example.net', reason],
        ['grace@example.net', 'Wrote to us, ticket 4712'],
      ],
    )
    const [entry] = (await admin.get('/audit?operation=platform-suppressions.import')).body.data
    assert.deepEqual([entry.project_id, entry.after.added, entry.after.addresses.count], [null, 2, 2])
    assert.equal((await verifyAudit(api.context.db.admin, { keys: new Map() })).first_bad, null)

    const again = await admin.post('/suppressions/import', { csv, reason })
    assert.deepEqual([again.body.added, again.body.already_suppressed], [0, 3])
    await assertNotAudited(again)
  })
})
