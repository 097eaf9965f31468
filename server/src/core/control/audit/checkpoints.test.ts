import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createPublicKey, verify } from 'node:crypto'
import { appendFile, mkdir, mkdtemp, open, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { createLogger } from '../../../platform/telemetry/log.ts'
import { auditEntry, recordEach } from '../../../testing/fixtures/audit-entries.ts'
import { cleanUp } from '../../../testing/harness/cleanup.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { catchUpFile } from './checkpoint-file.ts'
import { makeCheckpoint, makeCheckpoints, runCheckpoints } from './checkpoints.ts'
import { readKeys, signingKeyOf, verifyingKeysOf, writeKeys } from './keys.ts'
import { recordAudit } from './record.ts'
import { verifyAudit } from './verify.ts'

const database = await testDatabase()
const db = openDatabase(database, { poolSize: 8 }).as('admin')
const wideDatabase = await testDatabase()
const wideDb = openDatabase(wideDatabase).as('admin')
const rotatedDatabase = await testDatabase()
const rotatedDb = openDatabase(rotatedDatabase).as('admin')
const freshDb = openDatabase(await testDatabase()).as('admin')
const folder = await mkdtemp(path.join(tmpdir(), 'postern-checkpoints-'))
cleanUp(() => rm(folder, { recursive: true }))

const older = { id: 'old', key: Buffer.alloc(32, 1) }
const newer = { id: 'new', key: Buffer.alloc(32, 2) }
const key = signingKeyOf(older)
const keys = verifyingKeysOf([older, newer])
const checkpoint = () => db.transaction((tx) => makeCheckpoint(tx, key))
const rowOn = (projectId: number | null) => recordEach(db, [auditEntry({ projectId })])

describe('a checkpoint', () => {
  test('lists the heads of chains that have grown, and is not created if no chain has grown', async () => {
    assert.equal(await checkpoint(), null)
    await rowOn(1)
    await rowOn(1)
    await rowOn(null)
    const positions = async () => (await checkpoint())?.heads.map(({ chain, seq }) => [chain, seq])
    assert.deepEqual(await positions(), [
      [0, 1],
      [1, 2],
    ])
    await rowOn(1)
    await rowOn(2)
    assert.deepEqual(await positions(), [
      [1, 3],
      [2, 1],
    ])
    assert.equal(await checkpoint(), null)
  })

  test('does not wait for open transactions and does not list their rows', async () => {
    const open = Promise.withResolvers<void>()
    const held = db.transaction(async (tx) => {
      await recordAudit(tx, auditEntry({ projectId: 1 }))
      await open.promise
    })
    await rowOn(2)
    assert.deepEqual(
      (await checkpoint())?.heads.map(({ chain, seq }) => [chain, seq]),
      [[2, 2]],
    )
    open.resolve()
    await held
    assert.deepEqual(
      (await checkpoint())?.heads.map(({ chain, seq }) => [chain, seq]),
      [[1, 4]],
    )
  })

  test('can be verified with only the public key', async () => {
    const [row] = await database.query<{ hash: Buffer; signature: Buffer }>(
      'select hash, signature from control.audit_checkpoints where id = 1',
    )
    const [text] = writeKeys(verifyingKeysOf([older]))
    // Derived with HKDF-SHA256 from the master key. A different derivation would invalidate all existing checkpoints.
    assert.equal(text, 'old:2b8e66decaf5d68ade7e2444359d5dd5707cc4ec335945c99d1bd8c797f08691')
    const x = Buffer.from(text?.split(':')[1] ?? '', 'hex').toString('base64url')
    const publicKey = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })
    assert.ok(row && verify(null, row.hash, publicKey, row.signature))
    assert.deepEqual(writeKeys(readKeys([text ?? ''])), [text])
    assert.throws(() => readKeys(['old:abc']), /is not a public key/)
  })

  test('is created once by concurrent processes', async () => {
    await rowOn(3)
    const made = await Promise.all(Array.from({ length: 6 }, checkpoint))
    assert.equal(made.filter((one) => one !== null).length, 1)
    assert.equal((await verifyAudit(db, { keys })).first_bad, null)
  })

  test('has at most 5000 heads; the next checkpoint has the rest', async () => {
    await wideDatabase.query(`
      with rows as (
        insert into control.audit (chain, seq, at, actor_kind, actor_id, actor_digest, request_id, operation, project_id,
          resource_type, resource_id, xid, prev_hash, hash)
        select n, 1, now(), 'person', 1, sha256('a'), 'r', 'o', n, 't', '1', pg_current_xact_id(), sha256('p'),
               sha256(n::text::bytea)
          from generate_series(1, 5001) n returning chain, seq, hash)
      insert into control.audit_heads select * from rows`)
    assert.equal(await makeCheckpoints(wideDb, [older]), 2)
    const counts = await wideDatabase.query(
      `select jsonb_array_length(heads) as n from control.audit_checkpoints order by id`,
    )
    assert.deepEqual(counts, [{ n: 5000 }, { n: 1 }])
    assert.equal(await makeCheckpoints(wideDb, [older]), 0)
  })

  test('with an unknown key is valid only if a later checkpoint is signed with a known key', async () => {
    await recordEach(rotatedDb, [auditEntry()])
    await makeCheckpoints(rotatedDb, [older])
    await recordEach(rotatedDb, [auditEntry()])
    await makeCheckpoints(rotatedDb, [newer, older])
    const verified = async (...known: (typeof older)[]) => {
      const { first_bad, notes } = await verifyAudit(rotatedDb, { keys: verifyingKeysOf(known) })
      return first_bad?.problem ?? notes[0]
    }
    const noFile =
      'No checkpoint file was provided: rows removed together with their checkpoints cannot be detected.'
    assert.equal(await verified(older, newer), noFile)
    assert.equal(await verified(newer), noFile)
    assert.match((await verified(older)) ?? '', /Checkpoint 2 .* key "new", which is not known here/)
    assert.match((await verified()) ?? '', /Signatures were not checked/)
  })
})

describe('the checkpoint file', () => {
  const lines: string[] = []
  const log = createLogger('error', { write: (line) => void lines.push(line) })
  const home = path.join(folder, 'mounted')
  const file = path.join(home, 'checkpoints')
  let first = 0
  const run = () => runCheckpoints({ db, masterKeys: [older], file, log })
  const ids = async () =>
    (await readFile(file, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).id)
  const count = async () =>
    Number((await database.query<{ n: string }>('select count(*) as n from control.audit_checkpoints'))[0]?.n)
  const upTo = (n: number) => Array.from({ length: n - first + 1 }, (_, i) => i + first)
  const verified = () => verifyAudit(db, { keys, checkpointFile: file })

  test('starts with the first checkpoint in a new installation, without notes or log lines', async () => {
    const fresh = path.join(folder, 'fresh')
    const verifiedFresh = () => verifyAudit(freshDb, { keys, checkpointFile: fresh })
    assert.deepEqual([(await verifiedFresh()).ok, (await verifiedFresh()).notes], [true, []])
    await recordEach(freshDb, [auditEntry()])
    await runCheckpoints({ db: freshDb, masterKeys: [older], file: fresh, log })
    assert.deepEqual([(await verifiedFresh()).ok, (await verifiedFresh()).notes], [true, []])
    assert.deepEqual(lines, [])
  })

  test('logs an error and causes a permanent note if it starts after the first checkpoint', async () => {
    await mkdir(home)
    assert.match(
      (await verified()).first_bad?.problem ?? '',
      /checkpoints is missing or empty, although checkpoints exist/,
    )
    await run()
    first = await count()
    assert.ok(first > 1)
    assert.match(lines.join(), /"level":"?(50|error)"?.*A new file begins with checkpoint \d+/)
    lines.length = 0
    await rowOn(4)
    await run()
    assert.deepEqual(await ids(), upTo(await count()))
    assert.deepEqual(lines, [])
    const { ok, notes } = await verified()
    assert.equal(ok, true)
    assert.match(notes.join(), new RegExp(`begins with checkpoint ${first}`))
    assert.equal(notes.length, 1)
  })

  test('completes a partial first line', async () => {
    const cutFile = path.join(home, 'cut')
    await catchUpFile(db, cutFile)
    const whole = await readFile(cutFile)
    for (const length of [1, 20, 60, whole.length - 1]) {
      await truncate(cutFile, length)
      await catchUpFile(db, cutFile)
      assert.deepEqual(await readFile(cutFile), whole, String(length))
    }
  })

  test('logs a write error and receives the missing checkpoints later', async () => {
    await rename(home, `${home}-elsewhere`)
    await rowOn(4)
    await run()
    assert.match(lines.join(), /failed to update the audit checkpoint file/)
    await rename(`${home}-elsewhere`, home)
    await rowOn(4)
    await run()
    assert.deepEqual(await ids(), upTo(await count()))
    await run()
    assert.deepEqual(await ids(), upTo(await count()))
    assert.equal((await verified()).ok, true)
  })

  test('is reported if it is unreadable, empty or not a checkpoint file', async () => {
    const whole = await readFile(file)
    await writeFile(file, 'nonsense\n')
    assert.match((await verified()).first_bad?.problem ?? '', /contains a line that is not JSON: nonsense/)
    await writeFile(file, '')
    assert.match((await verified()).first_bad?.problem ?? '', /is missing or empty/)
    await writeFile(file, whole)
    const { first_bad } = await verifyAudit(db, { keys, checkpointFile: home })
    assert.match(first_bad?.problem ?? '', /mounted cannot be read: EISDIR/)
  })

  test('can receive a checkpoint during verification', async () => {
    const pipe = path.join(folder, 'pipe')
    await promisify(execFile)('mkfifo', [pipe])
    const verification = verifyAudit(db, { keys, checkpointFile: pipe })
    // Opening the pipe blocks until verification opens it. By then, the checkpoints in the database have been read.
    const writer = await open(pipe, 'w')
    await rowOn(4)
    await run()
    await writer.writeFile(await readFile(file))
    await writer.close()
    const { first_bad } = await verification
    assert.equal(first_bad, null)
  })

  test('receives each line once from concurrent processes', async () => {
    await rowOn(4)
    await Promise.all(Array.from({ length: 6 }, run))
    assert.deepEqual(await ids(), upTo(await count()))
  })

  test('completes a partial last line', async () => {
    const whole = await readFile(file)
    for (const missing of [1, 2, 100]) {
      await truncate(file, whole.length - missing)
      assert.match(
        (await verifyAudit(db, { keys, checkpointFile: file })).notes.join(),
        /last line of .* is incomplete/,
      )
      await run()
      assert.deepEqual(await readFile(file), whole)
    }
  })

  test('is not written if it differs from the database or is ahead of it', async () => {
    const whole = await readFile(file, 'utf8')
    lines.length = 0
    const last = await count()
    await writeFile(file, whole.replace(`"id":${last},"at":"2`, `"id":${last},"at":"3`))
    await assert.rejects(catchUpFile(db, file), /is not the one in the database/)
    await writeFile(file, 'something else\n')
    await assert.rejects(catchUpFile(db, file), /is it the right file/)
    await writeFile(file, `${whole}{"type":"checkpoint","id":${last + 7}}\n`)
    await assert.rejects(catchUpFile(db, file), /restored from a backup, or checkpoints were removed/)
    await writeFile(file, whole)
    await appendFile(file, '{"type":"elsewhere')
    await rowOn(4)
    await run()
    assert.match(lines.join(), /is not the one in the database/)
    assert.equal(await readFile(file, 'utf8'), `${whole}{"type":"elsewhere`)
  })
})
