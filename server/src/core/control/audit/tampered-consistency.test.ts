import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sql } from 'kysely'
import { auditEntry, recordEach } from '../../../testing/fixtures/audit-entries.ts'
import { intrudedAudit, masterKeys } from '../../../testing/fixtures/audit-intruder.ts'
import { auditView, searchAudit } from './audit.ts'
import { makeCheckpoint, makeCheckpoints } from './checkpoints.ts'
import { erasePerson } from './erasure.ts'
import { type EndLine, exportAudit } from './export.ts'
import type { ExportFile } from './export-files.ts'
import { signingKeyOf } from './keys.ts'
import { recordAudit } from './record.ts'
import { verifyAudit, verifyFiles } from './verify.ts'

/** Problems that correct hashes do not reveal: missing personal data, wrong times and unreadable values. */
const { db, keys, query, verify, verifyAfter } = await intrudedAudit()

const inPast = (offset: string) =>
  db.transaction(async (tx) => {
    await sql`select set_config('postern.clock_offset', ${offset}, true)`.execute(tx)
    await recordAudit(tx, auditEntry())
  })

/** Verifies an export, with each line changed by `changed`. */
async function verifyExported(changed: (line: string) => string = (line) => line) {
  const lines: string[] = []
  for await (const line of exportAudit(db)) lines.push(changed(line.slice(0, -1)))
  const end = JSON.parse(lines.at(-1) ?? '') as EndLine
  const file: ExportFile = {
    path: 'the export',
    end,
    async *lines() {
      for (const text of lines) yield { text }
    },
  }
  return verifyFiles([file], { keys })
}

describe('personal data', () => {
  const deleted = () =>
    query(`delete from control.audit_people where audit_id =
      (select id from control.audit where chain = 8 and seq = 1) and part = 'subject'`)
  const wanted = /^Personal data is missing in 6 places, but the recorded erasures account for 5/

  test('that was deleted without a recorded erasure is reported', async () => {
    const { ok, first_bad, erased } = await verifyAfter(deleted)
    assert.deepEqual([ok, erased, first_bad?.chain, first_bad?.seq], [false, 6, null, null])
    assert.match(first_bad?.problem ?? '', wanted)
  })

  test('is not checked if only one chain is verified', async () => {
    let notes: string[] = []
    await verifyAfter(async () => {
      await deleted()
      const verification = await verifyAudit(db, { keys, projectId: 8 })
      assert.equal(verification.ok, true)
      notes = verification.notes
    })
    assert.ok(notes.includes('Erasures were not checked: that requires all chains.'))
  })

  test('that was removed from an export is reported', async () => {
    assert.equal((await verifyExported()).first_bad, null)
    const { first_bad } = await verifyExported((line) =>
      line.replace(/"people":\[\{"part":"actor".*?\}\]/, '"people":[]'),
    )
    assert.match(
      first_bad?.problem ?? '',
      /^Personal data is missing in \d+ places, but the recorded erasures/,
    )
  })

  test('can be erased during verification', async () => {
    const reading = verifyAfter(async () => {
      const verification = verify(false)
      await db.transaction((tx) =>
        erasePerson(tx, { email: 'carol@example.com', requestId: 'r', reason: 'erasure request' }),
      )
      assert.equal((await verification).first_bad, null)
    })
    assert.equal((await reading).first_bad, null)
  })
})

describe('a row with a correct hash', () => {
  test('is reported if it was backdated and there is no other problem', async () => {
    const { first_bad, rows } = await verifyAfter(() => inPast('-400 days'))
    assert.deepEqual([first_bad?.chain, first_bad?.seq, rows], [7, 6, 16])
    assert.match(
      first_bad?.problem ?? '',
      /is dated 20.*, but row 5 before it is dated 20.*: it was backdated/,
    )
  })

  test('can be a few minutes older than the previous row', async () => {
    assert.equal((await verifyAfter(() => inPast('-9 minutes'))).first_bad, null)
  })

  test('is reported if its id is not greater than the previous id', async () => {
    const { first_bad } = await verifyAfter(async () => {
      await query(`select setval('control.audit_id_seq', 400)`)
      await recordEach(db, [auditEntry()])
      await query(`select setval('control.audit_id_seq', 300)`)
      await recordEach(db, [auditEntry()])
    })
    assert.match(first_bad?.problem ?? '', /^Row 7 of chain 7 has the id 301, which is not greater than/)
  })

  test('is reported if no checkpoint of the next ten minutes covers it', async () => {
    const kept = (offset: string) => async () => {
      await query(
        'update control.audit_covered c set seq = h.seq from control.audit_heads h where h.chain = c.chain',
      )
      await query(
        'insert into control.audit_covered select chain, seq from control.audit_heads where chain = 9',
      )
      await recordEach(db, [auditEntry({ projectId: 10 })])
      await db.transaction(async (tx) => {
        await sql`select set_config('postern.clock_offset', ${offset}, true)`.execute(tx)
        await makeCheckpoint(tx, signingKeyOf(masterKeys[0]))
      })
    }
    const { first_bad } = await verifyAfter(kept('11 minutes'))
    assert.match(first_bad?.problem ?? '', /^Row 5 of chain 7 is older than checkpoint 3 but not covered/)
    assert.equal((await verifyAfter(kept('9 minutes'))).first_bad, null)
  })
})

describe('unreadable data', () => {
  const nested = (depth: number) => () =>
    query(`update control.audit set after = ('{"a":' || repeat('[', ${depth}) || repeat(']', ${depth}) || '}')::jsonb
      where chain = 8 and seq = 2`)

  for (const depth of [150, 2_000, 5_000]) {
    test(`a value nested ${depth} levels deep is reported, and list and export still work`, async () => {
      const { first_bad } = await verifyAfter(async () => {
        await nested(depth)()
        const listed = (await db.read((tx) => searchAudit(tx, { limit: 50 }))).rows.map(auditView)
        assert.ok(JSON.stringify(listed).includes('This value is nested too deeply. Verify the audit log.'))
        const { first_bad: inFile } = await verifyExported()
        assert.deepEqual([inFile?.chain, inFile?.seq], [8, 2], inFile?.problem)
      })
      assert.deepEqual([first_bad?.chain, first_bad?.seq], [8, 2], first_bad?.problem)
    })
  }

  test('a checkpoint with deeply nested heads is reported', async () => {
    const { first_bad } = await verifyAfter(() =>
      query(
        `update control.audit_checkpoints set heads = (repeat('[', 5000) || repeat(']', 5000))::jsonb where id = 2`,
      ),
    )
    assert.match(first_bad?.problem ?? '', /^Checkpoint 2 in the database was altered/)
  })

  test("numbers and times outside JavaScript's range do not break the list", async () => {
    await verifyAfter(async () => {
      await query(`update control.audit set id = 9223372036854775807, seq = -9223372036854775808, at = 'infinity'
        where chain = 8 and seq = 2`)
      const [first] = (await db.read((tx) => searchAudit(tx, { limit: 50 }))).rows.map(auditView)
      assert.deepEqual([first?.id, first?.at], [Number.MAX_SAFE_INTEGER, 'unreadable'])
    })
  })

  test('an incremental export ends despite forged numbers', async () => {
    await verifyAfter(async () => {
      let next = ''
      for await (const line of exportAudit(db)) next = (JSON.parse(line) as EndLine).next
      await recordEach(db, [auditEntry(), auditEntry()])
      await query('update control.audit set seq = 9223372036854775807 where chain = 7 and seq = 7')
      const lines: string[] = []
      for await (const line of exportAudit(db, { after: next })) lines.push(line)
      assert.equal(lines.length, 3)
    })
  })

  test('a row that the database cannot read is reported, and other rows are read', async () => {
    await query(`
      create function public.broken(jsonb) returns jsonb language plpgsql stable as
        $$ begin raise exception 'missing chunk number 0 for toast value 16999' using errcode = 'XX001'; end $$;
      alter table control.audit rename to audit_table;
      create view control.audit as select chain, seq, id, at, actor_kind, actor_id, actor_digest, subject_digest, request_id,
        operation, project_id, resource_type, resource_id, reason,
        case when chain = 8 and seq = 2 then public.broken(before) else before end as before,
        after, related, limit_exception, bulk_id, xid, prev_hash, hash from control.audit_table;
      grant select on control.audit to postern_admin`)
    try {
      const { first_bad } = await verify(false)
      assert.equal(first_bad?.problem, 'Row 2 of chain 8 cannot be read.')
      const { first_bad: inFile } = await verifyExported()
      assert.equal(inFile?.problem, 'Row 2 of chain 8 cannot be read.')
    } finally {
      await query('drop view control.audit; alter table control.audit_table rename to audit')
    }
  })

  test('verification stops when the caller aborts', async () => {
    const { ok, rows, first_bad } = await verifyAudit(db, { keys, signal: AbortSignal.abort() })
    assert.deepEqual([ok, rows], [false, 0])
    assert.match(first_bad?.problem ?? '', /was stopped before it finished/)
  })

  test('all changes were undone', async () => {
    await makeCheckpoints(db, masterKeys)
    assert.equal((await verify(false)).first_bad, null)
  })
})
