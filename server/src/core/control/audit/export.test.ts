import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../../platform/db/db.ts'
import { auditEntry, everyKind, recordEach } from '../../../testing/fixtures/audit-entries.ts'
import { masterKeys } from '../../../testing/fixtures/audit-intruder.ts'
import { cleanUp } from '../../../testing/harness/cleanup.ts'
import { databaseNow, openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { type RowContent, rowHash } from './chain.ts'
import { catchUpFile } from './checkpoint-file.ts'
import { makeCheckpoints } from './checkpoints.ts'
import { auditLines, type EndLine, type ExportOptions, exportAudit, isSnapshot, pagesOf } from './export.ts'
import { verifyingKeysOf } from './keys.ts'
import { recordAudit } from './record.ts'
import { verifyAudit, verifyExport } from './verify.ts'

const database = await testDatabase()
const db = openDatabase(database, { poolSize: 10 }).as('admin')
const busyDatabase = await testDatabase()
const busyDb = openDatabase(busyDatabase, { poolSize: 10 }).as('admin')
const restoredDatabase = await testDatabase()
const restoredDb = openDatabase(restoredDatabase).as('admin')
const folder = await mkdtemp(path.join(tmpdir(), 'postern-export-'))
cleanUp(() => rm(folder, { recursive: true }))

interface Exported {
  text: string
  rows: { chain: number; seq: number; people: { part: string }[] }[]
  types: string[]
  end: EndLine
}

async function exported(from: Db = db, options: ExportOptions = {}): Promise<Exported> {
  let text = ''
  for await (const line of exportAudit(from, options)) text += line
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  return {
    text,
    rows: lines.filter(({ type }) => type === 'audit'),
    types: lines.map(({ type }) => type),
    end: lines.at(-1),
  }
}

async function saved({ text }: Exported, name: string): Promise<string> {
  const file = path.join(folder, name)
  await writeFile(file, text)
  return file
}

/** The same database with its clock moved forward. */
async function later(offset: string): Promise<Db> {
  const name = new URL(database.url).pathname.slice(1)
  await database.query(`alter database ${name} set postern.clock_offset = '${offset}'`)
  return openDatabase(database).as('admin')
}

const namesOf = ({ rows }: Exported): string[] => rows.map(({ chain, seq }) => `${chain}/${seq}`)
const keys = verifyingKeysOf(masterKeys)

describe('an export', () => {
  test('contains the rows by chain and number with personal data, the checkpoints, and a last line with their counts', async () => {
    await recordEach(db, everyKind)
    await makeCheckpoints(db, masterKeys)
    const before = await databaseNow(database)
    const { rows, types, end, text } = await exported()
    const after = await databaseNow(database)
    assert.deepEqual(
      rows.map(({ chain, seq, people }) => [chain, seq, people.map(({ part }) => part).join()]),
      [
        [0, 1, 'actor'],
        [0, 2, 'actor'],
        [7, 1, 'actor'],
        [7, 2, 'actor'],
        [8, 1, 'actor,subject'],
        [8, 2, 'actor,subject'],
        [8, 3, 'actor'],
      ],
    )
    assert.deepEqual(types, [...Array(7).fill('audit'), 'checkpoint', 'end'])
    const { at, next, ...counts } = end
    assert.ok(isSnapshot(next), next)
    assert.ok(before <= new Date(at) && new Date(at) <= after, at)
    assert.deepEqual(counts, { type: 'end', rows: 7, checkpoints: 1, project: null, after: null })
    assert.ok(text.endsWith('}\n'))
    const { ok, rows: verified } = await verifyExport([await saved(await exported(), 'full')], { keys })
    assert.deepEqual({ ok, verified }, { ok: true, verified: 7 })
  })

  test('of one project contains only its chain and is verified against checkpoints of all chains', async () => {
    const [checkpoint = ''] = (await exported()).text
      .split('\n')
      .filter((line) => line.includes('"checkpoint"'))
    const checkpointFile = path.join(folder, 'checkpoints')
    await writeFile(checkpointFile, `${checkpoint}\n`)
    const project = await exported(await later('2 minutes'), { projectId: 8 })
    assert.deepEqual(namesOf(project), ['8/1', '8/2', '8/3'])
    const verified = await verifyExport([await saved(project, 'project')], { keys, checkpointFile })
    assert.deepEqual([verified.first_bad, verified.notes], [null, ['Only chain 8 was verified.']])

    const [first, second, , end] = project.text.trimEnd().split('\n')
    const cut = { ...project, text: `${first}\n${second}\n${end?.replace('"rows":3', '"rows":2')}\n` }
    const { first_bad } = await verifyExport([await saved(cut, 'project')], { keys, checkpointFile })
    assert.match(first_bad?.problem ?? '', /^Row 3 of chain 8 is missing/)
  })

  test('verifies if the checkpoint file is newer', async () => {
    const checkpointFile = path.join(folder, 'later-checkpoints')
    const file = await saved(await exported(), 'older')
    await catchUpFile(db, checkpointFile)
    const laterDb = await later('4 minutes')
    await recordEach(laterDb, [auditEntry({ projectId: 9 })])
    await makeCheckpoints(laterDb, masterKeys)
    await catchUpFile(laterDb, checkpointFile)
    const { first_bad, notes } = await verifyExport([file], { keys, checkpointFile })
    assert.equal(first_bad, null)
    assert.match(notes[0] ?? '', /The checkpoints in .* from 2 on are newer than/)
  })

  test('continues an earlier export with exactly the rows committed since', async () => {
    const first = await exported()
    const open = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    // This transaction has the lowest id and commits last.
    const late = db.transaction(async (tx) => {
      await sql`select pg_current_xact_id()`.execute(tx)
      begun.resolve()
      await open.promise
      await recordAudit(tx, auditEntry())
    })
    await begun.promise
    await recordEach(db, [auditEntry(), auditEntry({ projectId: 9 })])
    const second = await exported(db, { after: first.end.next })
    open.resolve()
    await late
    const third = await exported(db, { after: second.end.next })
    const fourth = await exported(db, { after: third.end.next })
    assert.deepEqual(namesOf(second), ['7/3', '9/2'])
    assert.deepEqual(namesOf(third), ['7/4'])
    assert.deepEqual(namesOf(fourth), [])
    const files = [
      await saved(third, 'c'),
      await saved(first, 'a'),
      await saved(fourth, 'd'),
      await saved(second, 'b'),
    ]
    const { ok, rows, first_bad } = await verifyExport(files, { keys })
    assert.deepEqual({ ok, rows, first_bad }, { ok: true, rows: 11, first_bad: null })

    const without = (...left: number[]) =>
      verifyExport(
        files.filter((_, i) => !left.includes(i)),
        { keys },
      )
    assert.match((await without(0)).first_bad?.problem ?? '', /continues an export that was not provided/)
    await assert.rejects(without(1), /exactly one full export/)
  })

  test('of one project continues with only that project', async () => {
    const first = await exported(db, { projectId: 9 })
    await recordEach(db, [auditEntry(), auditEntry({ projectId: 9 })])
    assert.deepEqual(namesOf(await exported(db, { projectId: 9, after: first.end.next })), ['9/3'])
  })

  test('is detected as truncated at any position', async () => {
    const { text } = await exported()
    for (const length of [0, 1, 500, text.length - 200, text.length - 2, text.length - 1]) {
      const file = path.join(folder, 'cut')
      await writeFile(file, text.slice(0, length))
      assert.match(
        (await verifyExport([file], { keys })).first_bad?.problem ?? '',
        /is truncated/,
        String(length),
      )
    }
  })

  test('rejects an invalid snapshot', async () => {
    for (const after of ['', '5', '5:4:', '5:9:9', '5:9:7,6', '0:1:', '5:9:7;', '9'.repeat(30)]) {
      await assert.rejects(exported(db, { after }), { code: 'invalid_parameter' }, after)
    }
    await assert.rejects(exported(db, { after: '900000000000:900000000000:' }), /start with a full export/)
  })

  test('reads long chains and many chains in pages', async () => {
    const before = await exported()
    await db.transaction(async (tx) => {
      for (let i = 0; i < 1050; i++) await recordAudit(tx, auditEntry({ projectId: i < 1020 ? 10 : i }))
    })
    const full = await exported()
    const since = await exported(db, { after: before.end.next })
    assert.equal(since.rows.length, 1050)
    assert.equal(full.rows.length, before.rows.length + 1050)
    const { ok, rows } = await verifyExport([await saved(before, 'x'), await saved(since, 'y')], { keys })
    assert.deepEqual({ ok, rows }, { ok: true, rows: full.rows.length })
    assert.equal((await verifyAudit(db, { keys })).rows, full.rows.length)
  })
})

test('pagesOf splits and combines ranges into pages of a thousand rows', () => {
  const ranges = [
    { chain: 1n, first: 5n, last: 2400n },
    { chain: 2n, first: 1n, last: 1n },
    { chain: 3n, first: 1n, last: 700n },
  ]
  const pages = [...pagesOf(ranges)]
  const sizes = pages.map((page) => page.reduce((sum, { first, last }) => sum + Number(last - first) + 1, 0))
  assert.deepEqual(sizes, [1000, 1000, 1000, 97])
  assert.deepEqual(pages[2], [
    { chain: 1n, first: 2005n, last: 2400n },
    { chain: 2n, first: 1n, last: 1n },
    { chain: 3n, first: 1n, last: 603n },
  ])
})

test('exports made during writes contain every row exactly once, without gaps', async (t) => {
  let writing = true
  let written = 0
  const pause = () => sleep(Math.random() * 20)
  const writers = Array.from({ length: 6 }, async () => {
    while (writing) {
      await busyDb.transaction(async (tx) => {
        // Ordering by transaction id would miss a row that is written late by a transaction with a low id.
        if (Math.random() < 0.5) await sql`select pg_current_xact_id()`.execute(tx)
        await pause()
        await recordAudit(tx, auditEntry({ projectId: 1 + Math.floor(Math.random() * 3) }))
        if (Math.random() < 0.3) await pause()
      })
      written++
    }
  })
  const files: string[] = []
  const seen: string[] = []
  let after: string | undefined
  const take = async () => {
    const next = await exported(busyDb, { after })
    after = next.end.next
    seen.push(...namesOf(next))
    files.push(await saved(next, `busy-${files.length}`))
  }
  for (let i = 0; i < 25 || written <= 100; i++) {
    await take()
    await sleep(40)
    const { first_bad } = await verifyExport(files, { keys: new Map() })
    assert.equal(first_bad, null, `after ${files.length} exports`)
  }
  writing = false
  await Promise.all(writers)
  await take()
  assert.equal(seen.length, written)
  assert.equal(new Set(seen).size, written)
  t.diagnostic(`${written} rows in ${files.length} exports`)
})

test('an audit log restored from a dump into another cluster can be exported and verified', async () => {
  await recordEach(restoredDb, [auditEntry(), auditEntry()])
  // The second row gets a transaction id that this cluster has not reached.
  const rows: (RowContent & { type: string; prev_hash: string; hash: string; people: unknown })[] = []
  for await (const { value } of auditLines(restoredDb)) rows.push(value as never)
  const { type: _type, prev_hash, hash: _hash, people: _people, ...content } = rows[1] ?? assert.fail()
  const xid = '4000000000'
  const hash = rowHash(prev_hash, { ...content, xid })
  await restoredDatabase.query(`alter table control.audit disable trigger all`)
  await restoredDatabase.query(`update control.audit set xid = $1, hash = decode($2, 'hex') where seq = 2`, [
    xid,
    hash,
  ])
  await restoredDatabase.query(`update control.audit_heads set hash = decode($1, 'hex')`, [hash])
  await recordEach(restoredDb, [auditEntry()])
  assert.deepEqual(namesOf(await exported(restoredDb)), ['7/1', '7/2', '7/3'])
  assert.equal((await verifyAudit(restoredDb, { keys })).first_bad, null)
})
