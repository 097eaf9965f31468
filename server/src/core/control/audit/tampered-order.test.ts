import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { intrudedAudit, masterKeys } from '../../../testing/fixtures/audit-intruder.ts'
import { type RowContent, rowHash } from './chain.ts'
import { makeCheckpoints } from './checkpoints.ts'
import { auditLines } from './export.ts'

/** Rows that an attacker with full access to the database deletes, adds, moves and rewrites. */
const { db, query, verify, verifyAfter } = await intrudedAudit()
const clean = await verify(true)

const sql =
  (...statements: string[]) =>
  () =>
    query(statements.join(';'))
const idOf = (chain: number, seq: number) =>
  `(select id from control.audit where chain = ${chain} and seq = ${seq})`

type Tampering = [name: string, tamper: () => Promise<unknown>, found: [chain: number, seq: number] | RegExp]

const withoutTheFile: Tampering[] = [
  ['the first row deleted', sql('delete from control.audit where chain = 7 and seq = 1'), [7, 1]],
  ['a row in the middle deleted', sql('delete from control.audit where chain = 7 and seq = 3'), [7, 3]],
  ['the last row deleted', sql('delete from control.audit where chain = 7 and seq = 5'), [7, 5]],
  ['all rows of a chain deleted, but not its head', sql('delete from control.audit where chain = 9'), [9, 1]],
  ['a chain truncated below a checkpoint, with its head adjusted', () => truncate(7, 3), [7, 4]],
  ['a chain deleted with its head', () => truncate(8, 0), [8, 1]],
  [
    'a changed kind of actor',
    sql("update control.audit set actor_kind = 'system' where chain = 0 and seq = 1"),
    [0, 1],
  ],
  [
    'a row removed from its bulk action',
    sql('update control.audit set bulk_id = null where chain = 7 and seq = 2'),
    [7, 2],
  ],
  ['a row renumbered', sql('update control.audit set seq = 40 where chain = 8 and seq = 2'), [8, 2]],
  ['two rows swapped', () => swap('control.audit', 'chain = 8 and', 'seq', 2, 3), [8, 2]],
  ['a row moved to another chain', sql(move(7, 5, 9, 2)), [7, 5]],
  [
    'a row moved to another chain, with the heads adjusted',
    sql(move(7, 5, 9, 2), setHead(7, 4), 'update control.audit_heads set seq = 2 where chain = 9'),
    [9, 2],
  ],
  ['a row copied to the end of its chain', () => copy(7, 2, 6), [7, 6]],
  ['a row copied to the start of its chain', () => copy(7, 2, 0), [7, 0]],
  ['a row appended with a correct hash, but without a new head', () => forge(7, 6, { id: 5000 }), [7, 6]],
  ['a row rewritten with a correct hash', () => forge(7, 3, { reason: 'forged' }), [7, 4]],
  ['a chain rewritten from a row on, with its head adjusted', () => fork(7, 2), [7, 2]],
  ['the personal data of two rows swapped', () => swap('control.audit_people', '', 'audit_id', 1, 2), [7, 1]],
  ['a person added to a row without a subject', () => addPerson(idOf(7, 1), 'subject'), [7, 1]],
  ['an erased person replaced with another', () => addPerson(idOf(8, 3), 'actor'), [8, 3]],
  ['a person added without a row', () => addPerson('777', 'actor'), /id 777, which does not exist/],
  [
    'the first checkpoint deleted',
    sql('delete from control.audit_checkpoints where id = 1'),
    /^Checkpoint 2 .* comes after checkpoint 0/,
  ],
  ['a checkpoint signed with another key', () => resign('k1'), /^Checkpoint 2 .* signature is invalid/],
  [
    'a checkpoint signed with an unknown key',
    () => resign('k2'),
    /^Checkpoint 2 .* "k2", which is not known/,
  ],
  ['a head deleted', sql('delete from control.audit_heads where chain = 8'), /^Chain 8 has no head/],
  ['a head set back', sql(setHead(7, 4)), [7, 5]],
]

const truncateWithCheckpoint = async () => {
  for (const [chain, last] of [
    [0, 3],
    [7, 2],
    [8, 3],
  ] as const) {
    await truncate(chain, last)
  }
  await query('delete from control.audit_checkpoints where id = 2')
}

const withTheFile: Tampering[] = [
  [
    'the last checkpoint deleted',
    sql('delete from control.audit_checkpoints where id = 2'),
    /^Checkpoint 2 is only in/,
  ],
  ['every checkpoint deleted', sql('delete from control.audit_checkpoints'), /^Checkpoint 1 is only in/],
  ['every chain truncated, with heads and checkpoint adjusted', truncateWithCheckpoint, [0, 4]],
  [
    'a checkpoint replaced with another signed one',
    () => resign('k1', masterKeys[0].key),
    /^Checkpoint 2 differs from the one in/,
  ],
]

describe('verification', () => {
  for (const [tamperings, withFile] of [
    [withoutTheFile, false],
    [withTheFile, true],
  ] as const) {
    for (const [name, tamper, found] of tamperings) {
      test(`detects ${name}`, async () => {
        const { ok, first_bad: bad } = await verifyAfter(tamper, withFile)
        assert.equal(ok, false)
        if (found instanceof RegExp) assert.match(bad?.problem ?? '', found)
        else assert.deepEqual([bad?.chain, bad?.seq], found, bad?.problem)
      })
    }
  }

  test('detects a truncated chain after later checkpoints', async () => {
    const { first_bad } = await verifyAfter(async () => {
      await truncate(7, 3)
      await makeCheckpoints(db, masterKeys)
    })
    assert.match(
      first_bad?.problem ?? '',
      /^Row 4 of chain 7 was signed by checkpoint 2 but is missing in checkpoint 3/,
    )
  })

  test('does not detect the truncation of rows that no external checkpoint covers, as documented', async () => {
    assert.equal((await verifyAfter(() => truncate(9, 0), true)).ok, true)
    assert.equal((await verifyAfter(truncateWithCheckpoint, false)).ok, true)
  })

  test('finds no problem after all changes are undone', async () => {
    assert.deepEqual(await verify(true), clean)
    assert.deepEqual(clean, {
      ok: true,
      signed: true,
      rows: 15,
      chains: 4,
      checkpoints: 2,
      erased: 5,
      first_bad: null,
      notes: ['2 rows are not covered by a checkpoint yet.'],
    })
  })
})

function move(chain: number, seq: number, toChain: number, toSeq: number): string {
  return `update control.audit set chain = ${toChain}, project_id = ${toChain}, seq = ${toSeq}
    where chain = ${chain} and seq = ${seq}`
}

function setHead(chain: number, seq: number): string {
  return `update control.audit_heads h set seq = a.seq, hash = a.hash from control.audit a
    where h.chain = ${chain} and a.chain = ${chain} and a.seq = ${seq}`
}

async function truncate(chain: number, last: number): Promise<void> {
  await query(`delete from control.audit_people where audit_id in
    (select id from control.audit where chain = ${chain} and seq > ${last})`)
  await query(`delete from control.audit where chain = ${chain} and seq > ${last}`)
  await query(last > 0 ? setHead(chain, last) : `delete from control.audit_heads where chain = ${chain}`)
}

async function swap(table: string, where: string, column: string, a: number, b: number): Promise<void> {
  for (const [from, to] of [
    [a, -1],
    [b, a],
    [-1, b],
  ]) {
    await query(`update ${table} set ${column} = ${to} where ${where} ${column} = ${from}`)
  }
}

async function copy(chain: number, seq: number, to: number): Promise<void> {
  await query(
    `create temp table copied as select * from control.audit where chain = ${chain} and seq = ${seq}`,
  )
  await query(`update copied set seq = ${to}, id = 6000`)
  await query('insert into control.audit select * from copied; drop table copied')
}

const addPerson = (auditId: string, part: string) =>
  query(`insert into control.audit_people (audit_id, part, project_id, salt, email)
    values (${auditId}, '${part}', 7, decode(repeat('00', 16), 'hex'), 'mallory@example.com')`)

/** Recreates the last checkpoint. */
async function resign(id: string, key = Buffer.alloc(32, 9)): Promise<void> {
  await query('delete from control.audit_checkpoints where id = 2; delete from control.audit_covered')
  await makeCheckpoints(db, [{ id, key }])
}

type Row = RowContent & { type: string; prev_hash: string; hash: string; people: unknown }

async function rowsOf(chain: number): Promise<Row[]> {
  const rows: Row[] = []
  for await (const { value } of auditLines(db, { projectId: chain })) rows.push(value as Row)
  return rows
}

async function write(seq: number, row: Row, prevHash: string): Promise<string> {
  const { type: _type, people: _people, hash: _hash, prev_hash: _prev, ...content } = row
  const hash = rowHash(prevHash, { ...content, seq })
  await query('delete from control.audit where chain = $1 and seq = $2', [row.chain, seq])
  await query(
    `insert into control.audit (chain, seq, id, at, actor_kind, actor_id, actor_digest, subject_digest, request_id, operation,
       project_id, resource_type, resource_id, reason, before, after, related, limit_exception, bulk_id, xid, prev_hash,
       hash)
     select chain, $2, $3, at, actor_kind, actor_id, actor_digest, subject_digest, request_id, operation, project_id,
       resource_type, resource_id, $4, before, after, related, limit_exception, bulk_id, xid, decode($5, 'hex'),
       decode($6, 'hex')
       from backup.audit where chain = $1 and seq = $7`,
    [row.chain, seq, row.id, row.reason, prevHash, hash, row.seq],
  )
  return hash
}

/** Writes one row with a correct hash. */
async function forge(chain: number, seq: number, change: Partial<Row>): Promise<void> {
  const rows = await rowsOf(chain)
  const row = rows[Math.min(seq, rows.length) - 1]
  assert.ok(row)
  await write(seq, { ...row, ...change }, rows[seq - 2]?.hash ?? '')
}

/** Rewrites all rows from `from` on, and the head. */
async function fork(chain: number, from: number): Promise<void> {
  let hash = ''
  for (const row of await rowsOf(chain)) {
    hash = row.seq < from ? row.hash : await write(row.seq, { ...row, reason: 'forged' }, hash)
  }
  await query(`update control.audit_heads set hash = decode($2, 'hex') where chain = $1`, [chain, hash])
}
