import assert from 'node:assert/strict'
import { appendFile, mkdtemp, readFile, rm, stat, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { askLine } from '../../../platform/net/line-socket.ts'
import { createLogger } from '../../../platform/telemetry/log.ts'
import { auditEntry, recordEach } from '../../../testing/fixtures/audit-entries.ts'
import { cleanUp } from '../../../testing/harness/cleanup.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { checkpointHash, genesis } from './chain.ts'
import { findLast } from './checkpoints.sql.ts'
import { makeCheckpoints, makeCheckpointsBy } from './checkpoints.ts'
import { isEvidenceSigned } from './evidence-signature.ts'
import { isSigned, publicKeyOf, signHash, signingKeyFrom, signingKeyOf, verifyingKeysOf } from './keys.ts'
import { CheckpointSigner, serveSigner } from './signer.ts'
import { askSigner, type Proposal } from './signer-messages.ts'
import { verifyAudit } from './verify.ts'

const database = await testDatabase()
const db = openDatabase(database).as('admin')
const readonlyLogin = `signer_${process.pid}`
await database.query(`create role ${readonlyLogin} login noinherit in role postern_readonly`)
const readonlyUrl = database.superuserUrl.replace('postgres://postgres@', `postgres://${readonlyLogin}@`)
const readonly = openDatabase({ ...database, url: readonlyUrl, cellUrl: undefined }).as('readonly')
cleanUp(async () => void (await database.query(`drop role ${readonlyLogin}`)))
const folder = await mkdtemp(path.join(tmpdir(), 'postern-signer-'))
cleanUp(() => rm(folder, { recursive: true }))

const masterKeys = [{ id: '1', key: Buffer.alloc(32, 1) }] as const
const key = signingKeyFrom({ id: 'signer-1', seed: Buffer.alloc(32, 7) })
const keys = publicKeyOf(key)
const file = path.join(folder, 'checkpoints')
const socket = path.join(folder, 'socket')
const connection = { socket, keys }
const lines: string[] = []
const log = createLogger('warn', { write: (line) => void lines.push(line) })

const open = () => CheckpointSigner.open({ db: readonly, key, file, log })
let listener = await serveSigner(await open(), socket, log)
cleanUp(() => listener.close())
async function restart(): Promise<void> {
  await listener.close()
  listener = await serveSigner(await open(), socket, log)
}

const rowOn = (projectId: number | null) => recordEach(db, [auditEntry({ projectId })])
const verified = () => verifyAudit(db, { keys, checkpointFile: file, isFileFirst: true })
const lastOf = async () => {
  const [row] = await database.query<{ id: number; hash: string; heads: Proposal['heads'] }>(
    `select id::int, encode(hash, 'hex') as hash, heads from control.audit_checkpoints order by id desc limit 1`,
  )
  return row ?? { id: 0, hash: genesis, heads: [] }
}
const headOf = async (chain: number) => {
  const [row] = await database.query<{ seq: number; hash: string }>(
    `select seq::int, encode(hash, 'hex') as hash from control.audit where chain = $1 order by seq desc limit 1`,
    [chain],
  )
  return { chain, seq: row?.seq ?? 0, hash: row?.hash ?? '' }
}
/** A worker's proposal with the specified changes. */
const proposal = async (given: Partial<Proposal> = {}): Promise<Proposal> => {
  const { id, hash: prev_hash } = await lastOf()
  return {
    type: 'sign',
    id: id + 1,
    at: (await db.read(findLast)).at,
    heads: [await headOf(1)],
    prev_hash,
    ...given,
  }
}
const refusal = async (request: Proposal): Promise<string> => {
  const answer = await askSigner(socket, request)
  return answer.type === 'refused' ? answer.reason : `signed ${JSON.stringify(answer)}`
}

describe('the checkpoint signer', () => {
  test('signs grown chains, appends to its file, and the audit log verifies with its public key', async () => {
    await rowOn(1)
    await rowOn(null)
    assert.equal(await makeCheckpointsBy(connection, db), 1)
    assert.equal(await makeCheckpointsBy(connection, db), 0)
    await rowOn(1)
    assert.equal(await makeCheckpointsBy(connection, db), 1)
    const written = (await readFile(file, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.deepEqual(
      written.map(({ id, key_id }) => [id, key_id]),
      [
        [1, 'signer-1'],
        [2, 'signer-1'],
      ],
    )
    const { ok, signed, notes } = await verified()
    assert.deepEqual([ok, signed, notes], [true, true, []])
  })

  test('gives access only to its user and group', async () => {
    assert.equal((await stat(socket)).mode & 0o777, 0o660)
    assert.equal((await stat(file)).mode & 0o777, 0o640)
  })

  test('returns the signed checkpoint for a number that is already used', async () => {
    const { id, hash } = await lastOf()
    const [, before] = (await readFile(file, 'utf8')).trimEnd().split('\n')
    const { prev_hash, ...first } = JSON.parse(before ?? '')
    await rowOn(1)
    const answer = await askSigner(socket, await proposal({ id, prev_hash }))
    assert.ok(answer.type === 'signed')
    assert.deepEqual([answer.checkpoint.hash, answer.checkpoint.heads], [hash, first.heads])
    assert.match(await refusal(await proposal({ id, prev_hash: genesis })), /does not follow checkpoint 2/)
    assert.match(await refusal(await proposal({ id: id - 1 })), /Checkpoint 1 does not follow checkpoint 2/)
    assert.equal((await readFile(file, 'utf8')).trimEnd().split('\n').length, 2)
  })

  test('signs evidence that is dated now, and no other', async () => {
    const statement = { evidence_id: 3, project_id: 1, lines: 9, hash: 'ab'.repeat(32) }
    const { at } = await db.read(findLast)
    const before = await readFile(file, 'utf8')
    const answer = await askSigner(socket, { type: 'sign_evidence', ...statement, at })
    assert.ok(answer.type === 'signed_evidence')
    const verifyingKey = keys.get('signer-1') ?? assert.fail()
    const signed = { ...statement, at, key_id: 'signer-1' }
    assert.equal(isEvidenceSigned(verifyingKey, signed, answer.signature), true)
    assert.equal(isEvidenceSigned(verifyingKey, { ...signed, lines: 10 }, answer.signature), false)
    // Neither a checkpoint with this hash nor a line in the file.
    assert.equal(isSigned(verifyingKey, statement.hash, answer.signature), false)
    assert.equal(await readFile(file, 'utf8'), before)
    for (const minutes of [-6, 6]) {
      const wrong = new Date(Date.parse(at) + minutes * 60_000).toISOString()
      const refused = await askSigner(socket, { type: 'sign_evidence', ...statement, at: wrong })
      assert.match(
        refused.type === 'refused' ? refused.reason : '',
        /Evidence 3 is dated .*, but the current time/,
      )
    }
    lines.length = 0
  })

  test('rejects rows that are already signed, missing, or have a different hash', async () => {
    const head = await headOf(1)
    const [signedSeq] = (await lastOf()).heads.filter(({ chain }) => chain === 1).map(({ seq }) => seq)
    for (const [heads, reason] of [
      [[{ ...head, seq: signedSeq ?? 0 }], /is not after row 2, which was signed/],
      [[{ ...head, seq: head.seq + 1 }], /Chain 1 has no row 4/],
      [[{ ...head, hash: 'ab'.repeat(32) }], /Row 3 of chain 1 has a different hash in the database/],
      [[head, head], /The heads are not in ascending order/],
    ] as const) {
      assert.match(await refusal(await proposal({ heads: [...heads] })), reason)
    }
  })

  test('rejects a rewritten chain', async () => {
    // As a superuser. The owner of the tables could do the same.
    await rowOn(5)
    await rowOn(5)
    assert.equal(await makeCheckpointsBy(connection, db), 1)
    await database.query('alter table control.audit disable trigger append_only')
    await database.query('alter table control.audit_heads disable trigger all')
    await database.query('create table public.original as select * from control.audit where chain = 5')
    await database.query('delete from control.audit where chain = 5')
    await database.query('delete from control.audit_heads where chain = 5')
    for (let row = 0; row < 3; row++) await rowOn(5)
    await assert.rejects(
      makeCheckpointsBy(connection, db),
      /Row 3 of chain 5 does not continue the signed chain/,
    )
    await database.query('delete from control.audit where chain = 5')
    await database.query('insert into control.audit overriding system value select * from public.original')
    await database.query(
      `insert into control.audit_heads select chain, seq, hash from public.original order by seq desc limit 1
       on conflict (chain) do update set seq = excluded.seq, hash = excluded.hash`,
    )
    await database.query('drop table public.original')
    await database.query('alter table control.audit enable trigger append_only')
    await database.query(
      'delete from control.audit_people where audit_id not in (select id from control.audit)',
    )
    assert.equal((await verified()).first_bad, null)
  })

  test('returns a checkpoint that was signed but not recorded to the next worker', async () => {
    await rowOn(1)
    const orphan = await askSigner(socket, await proposal())
    assert.ok(orphan.type === 'signed')
    const { ok, notes } = await verified()
    assert.equal(ok, true)
    assert.match(notes.join(), /is in .* and not yet in the database/)
    await restart()
    await rowOn(2)
    assert.equal(await makeCheckpointsBy(connection, db), 1)
    assert.equal((await lastOf()).hash, orphan.checkpoint.hash)
    assert.equal(await makeCheckpointsBy(connection, db), 1)
    assert.deepEqual([(await verified()).ok, (await verified()).notes], [true, []])
  })

  test('lets concurrent workers record each checkpoint once', async () => {
    await rowOn(1)
    const made = await Promise.all(Array.from({ length: 5 }, () => makeCheckpointsBy(connection, db)))
    assert.deepEqual(made.toSorted(), [0, 0, 0, 0, 1])
    assert.equal((await verified()).ok, true)
  })

  test('removes a partial line left by a crash', async () => {
    const whole = await readFile(file)
    await appendFile(file, '{"type":"checkpoint","id":')
    await restart()
    assert.deepEqual(await readFile(file), whole)
  })

  test('does not start with an altered file', async () => {
    const whole = await readFile(file, 'utf8')
    await rm(file)
    await appendFile(file, whole.replace('"seq":1', '"seq":9'))
    await assert.rejects(open(), /Signed checkpoints cannot be read .* was altered/)
    await truncate(file, 0)
    await appendFile(file, whole)
    await open()
  })

  test('rejects invalid and oversized requests', async () => {
    const limits = { lineBytes: 2 ** 20, timeoutMs: 60_000 }
    assert.match(await askLine(socket, '{"type":"sign"}', limits), /"refused","reason":"Invalid request."/)
    assert.match(await askLine(socket, '{"type":"status","more":1}', limits), /refused/)
    await assert.rejects(askLine(socket, 'x'.repeat(2 ** 20 + 1), limits))
    const status = await askSigner(socket, { type: 'status' })
    assert.ok(status.type === 'status')
    assert.deepEqual(status.last, { id: (await lastOf()).id, hash: (await lastOf()).hash })
  })

  test('rejects a time that is not current', async () => {
    await rowOn(1)
    for (const at of ['2020-01-01T00:00:00Z', '2999-01-01T00:00:00Z', '2026-99-99T99:99:99Z'])
      assert.match(await refusal(await proposal({ at })), /is dated/)
    assert.equal(await makeCheckpointsBy(connection, db), 1)
  })

  test('refuses to sign after its file was replaced with an older copy', async () => {
    const whole = await readFile(file, 'utf8')
    const lines = whole.trimEnd().split('\n')
    await truncate(file, Buffer.byteLength(`${lines.slice(0, -1).join('\n')}\n`))
    await restart()
    await rowOn(1)
    const { id, prev_hash } = JSON.parse(lines.at(-1) ?? '')
    assert.match(await refusal(await proposal({ id, prev_hash })), /the file is an old copy/)
    await truncate(file, 0)
    await appendFile(file, whole)
    await restart()
    assert.equal(await makeCheckpointsBy(connection, db), 1)
    assert.equal((await verified()).ok, true)
  })

  test('is the only process that can make a valid checkpoint', async () => {
    await rowOn(1)
    const asMasterKey = signingKeyOf(masterKeys[0])
    const { id, at, heads, prev_hash } = await proposal()
    for (const [name, problem] of [
      ['1', /is signed with the key "1", which is not known here/],
      ['signer-1', /its signature is invalid/],
    ] as const) {
      const hash = checkpointHash(prev_hash, { id, at, heads, key_id: name })
      await database.query(
        `insert into control.audit_checkpoints (id, at, heads, key_id, prev_hash, hash, signature)
         values ($1, $2, $3, $4, decode($5, 'hex'), decode($6, 'hex'), decode($7, 'hex'))`,
        [id, at, JSON.stringify(heads), name, prev_hash, hash, signHash(asMasterKey, hash)],
      )
      assert.match((await verified()).first_bad?.problem ?? '', problem)
      // The signer does not continue from this checkpoint either.
      await assert.rejects(makeCheckpointsBy(connection, db), /does not follow checkpoint/)
      await database.query('alter table control.audit_checkpoints disable trigger append_only')
      await database.query('delete from control.audit_checkpoints where id = $1', [id])
      await database.query('alter table control.audit_checkpoints enable trigger append_only')
    }
    assert.equal(await makeCheckpointsBy(connection, db), 1)
    assert.equal((await verified()).ok, true)
  })

  test('continues from checkpoints signed with a master key before the signer was installed', async () => {
    const older = await testDatabase()
    const olderDb = openDatabase(older).as('admin')
    const url = older.superuserUrl.replace('postgres://postgres@', `postgres://${readonlyLogin}@`)
    await recordEach(olderDb, [auditEntry({ projectId: 1 }), auditEntry({ projectId: 2 })])
    await makeCheckpoints(olderDb, masterKeys)
    const begun = { ...connection, socket: path.join(folder, 'later') }
    const laterFile = path.join(folder, 'later-checkpoints')
    const signer = await CheckpointSigner.open({
      ...{ db: openDatabase({ ...older, url, cellUrl: undefined }).as('readonly'), key, log },
      file: laterFile,
    })
    const later = await serveSigner(signer, begun.socket, log)
    cleanUp(() => later.close())
    await recordEach(olderDb, [auditEntry({ projectId: 1 })])
    assert.equal(await makeCheckpointsBy(begun, olderDb), 1)
    const { ok, signed, notes } = await verifyAudit(olderDb, {
      keys,
      checkpointFile: laterFile,
      isFileFirst: true,
    })
    assert.deepEqual([ok, signed], [true, true])
    assert.match(notes.join(), /begins with checkpoint 2/)
    assert.equal((await verifyAudit(olderDb, { keys: verifyingKeysOf(masterKeys) })).ok, false)
  })
})
