import assert from 'node:assert/strict'
import { randomUUIDv7 } from 'node:crypto'
import { describe, test } from 'node:test'
import { erasePerson } from '../../core/control/audit/erasure.ts'
import { verifyAudit } from '../../core/control/audit/verify.ts'
import { relayToMail } from '../../core/outbox/relay-to-mail.ts'
import { auditOf } from '../../testing/expectations/audit.ts'
import { assertProblem } from '../../testing/expectations/problem.ts'
import { fixtures } from '../../testing/fixtures/fixtures.ts'
import { startApi } from '../../testing/harness/api.ts'
import { signedIn } from '../../testing/harness/client.ts'
import { testDatabase } from '../../testing/harness/database.ts'
import { watchRows } from '../../testing/harness/dump.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { makeProject } = fixtures(database, admin)
const { assertNotAudited } = auditOf(database, admin)
const db = api.context.db.admin

const reason = 'Suppressions of the previous provider'
const apply = () => relayToMail({ db, mailDb: api.context.cells.all[0].mail })
const importTo = (projectId: number, csv: string, query = '') =>
  admin.post(`/projects/${projectId}/suppressions/import${query}`, { csv, reason })
const stored = (projectId: number) =>
  database.query<{ address: string; reason: string }>(
    'select address, reason from mail.suppressions where project_id = $1 order by address',
    [projectId],
  )
const lastEntry = async (projectId: number) =>
  (await admin.get(`/audit?project_id=${projectId}&operation=suppressions.import`)).body.data[0]
const verify = () => verifyAudit(db, { keys: new Map() })

/** 10,000 lines: new addresses, every kind of bad line, duplicates and addresses that are already suppressed. */
const size = 10_000
const badLines = [
  'no address',
  'a@b',
  'Ada <ada@example.net>',
  'a@example.net,spam',
  'a@example.net,bounce,3',
  '"a@example.net',
  ',manual',
  'a b@example.net',
]
function largeFile(): { csv: string; bad: number; old: number; repeated: number } {
  const lines: string[] = []
  const counts = { bad: 0, old: 0, repeated: 0 }
  for (let n = 0; n < size; n++) {
    if (n % 10 === 7) lines.push(badLines[counts.bad++ % badLines.length] ?? '')
    else if (n % 10 === 8) lines.push(`OLD${counts.old++ % 50}@example.net`)
    else if (n % 10 === 9 && n > 10) lines.push(lines[counts.repeated++ % 7]?.toUpperCase() ?? '')
    else lines.push(`person${n}@example.net${n % 2 ? ',bounce' : ''}`)
  }
  return { csv: lines.join('\r\n'), ...counts }
}

describe('suppressions.import', () => {
  test('adds 10,000 lines with every kind of bad line, reports each, and writes one small audit row', async () => {
    const { id } = await makeProject()
    await database.query(
      `insert into mail.suppressions (project_id, address, reason)
       select $1, 'old' || n || '@example.net', 'complaint' from generate_series(0, 49) as n`,
      [id],
    )
    const { csv, bad, old } = largeFile()
    const preview = await importTo(id, csv, '?dry_run=true')
    const answer = await importTo(id, csv)
    assert.equal(answer.status, 202, answer.text.slice(0, 500))
    assert.deepEqual(preview.body.report, answer.body)
    const { lines, ...counts } = answer.body
    assert.equal(lines.length, size)
    assert.deepEqual([counts.invalid, counts.already_suppressed], [bad, old])
    assert.equal(counts.added + counts.already_suppressed + counts.duplicate + counts.invalid, size)
    assert.ok(counts.duplicate > 0)
    for (const { result, message } of lines) assert.equal(message === null, result !== 'invalid')

    await apply()
    const rows = await stored(id)
    assert.equal(rows.length, counts.added + 50)
    assert.deepEqual(
      rows.filter(({ address }) => /^(old0|person1|person2)@/.test(address)),
      [
        { address: 'old0@example.net', reason: 'complaint' },
        { address: 'person1@example.net', reason: 'bounce' },
        { address: 'person2@example.net', reason: 'manual' },
      ],
    )
    const entry = await lastEntry(id)
    const { addresses, ...recorded } = entry.after
    assert.deepEqual([recorded, addresses.count], [counts, counts.added])
    assert.match(addresses.list_digest, /^[0-9a-f]{64}$/)
    const [chained] = await database.query<{ text: string }>(
      'select audit::text as text from control.audit as audit where id = $1',
      [entry.id],
    )
    assert.ok((chained?.text.length ?? 0) < 2000, chained?.text)
    assert.ok(!chained?.text.includes('example.net'), 'the chain contains no address')
    assert.deepEqual(await database.query('select from control.outbox where project_id = $1', [id]), [])
  })

  test('adds nothing the second time, and writes no audit row', async () => {
    const { id } = await makeProject()
    await importTo(id, 'a@example.net\nb@example.net')
    await apply()
    const again = await importTo(id, 'A@example.net\nb@example.net')
    assert.deepEqual([again.body.added, again.body.already_suppressed], [0, 2])
    await assertNotAudited(again)
    assert.equal((await stored(id)).length, 2)
  })

  test('writes nothing in a dry run', async () => {
    const { id } = await makeProject()
    const rows = await watchRows(database)
    const preview = await importTo(id, 'a@example.net\nx', '?dry_run=true')
    assert.equal(preview.status, 200)
    assert.deepEqual(
      preview.body.changes.map(({ field, after }: { field: string; after: unknown }) => [field, after]),
      [
        ['added', 1],
        ['already_suppressed', 0],
        ['duplicate', 0],
        ['invalid', 1],
      ],
    )
    assert.match(preview.body.effects[0], /can no longer send: 1\./)
    await rows.assertUntouched()
  })

  test('keeps the addresses outside the chain, where they verify and can be erased', async () => {
    const { id } = await makeProject()
    await importTo(id, 'grace@example.net\nalan@example.net\nada@example.net')
    assert.deepEqual((await verify()).first_bad, null)
    await database.query(
      `update control.audit_people set email = 'forged@example.net' where email = 'alan@example.net'`,
    )
    assert.match(
      (await verify()).first_bad?.problem ?? '',
      /personal data of its after\.addresses was altered/,
    )
    await database.query(
      `update control.audit_people set email = 'alan@example.net' where email = 'forged@example.net'`,
    )
    const erased = await db.transaction((tx) =>
      erasePerson(tx, { email: 'Alan@example.net', requestId: randomUUIDv7(), reason: 'erasure request' }),
    )
    assert.equal(erased, 1)
    const verified = await verify()
    assert.deepEqual([verified.ok, verified.erased], [true, 1])
  })

  test('rejects a file without addresses or with too many lines, and a missing project first', async () => {
    const { id } = await makeProject()
    const tooMany = Array.from({ length: size + 1 }, (_, n) => `p${n}@example.net`).join('\n')
    for (const csv of ['\n', 'address', tooMany]) {
      const refused = await importTo(id, csv)
      assertProblem(refused, 422, 'validation_failed')
      await assertNotAudited(refused)
      assertProblem(await importTo(999999999, csv), 404, 'not_found')
    }
    assertProblem(
      await admin.post(`/projects/${id}/suppressions/import`, { csv: 'a@example.net' }),
      422,
      'reason_required',
    )
  })
})
