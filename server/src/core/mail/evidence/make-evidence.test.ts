import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import {
  contentsOf,
  evidenceFixtures,
  linesOfText,
  masterSigningKey,
} from '../../../testing/fixtures/evidence.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { cleanUp } from '../../../testing/harness/cleanup.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { openDatabase, testDatabase } from '../../../testing/harness/database.ts'
import { Killed, killedAt, points } from '../../../testing/harness/killed-db.ts'
import { publicKeyOf, signingKeyFrom } from '../../control/audit/keys.ts'
import { CheckpointSigner, serveSigner } from '../../control/audit/signer.ts'
import { verifyEvidence, verifyEvidenceFile } from '../../control/evidence/verify.ts'

const database = await testDatabase()
const api = await startApi(database)
const admin = await signedIn(api)
const { deps, makeHistory, request, run, show, download, logLines } = evidenceFixtures(database, admin)
const keys = publicKeyOf(masterSigningKey)
const verify = (file: string) => verifyEvidence(linesOfText(file), keys)

const folder = await mkdtemp(path.join(tmpdir(), 'postern-evidence-'))
cleanUp(() => rm(folder, { recursive: true }))

describe('the worker', () => {
  test('makes a file of the acts, interventions, figures and timelines', async () => {
    const project = await makeHistory()
    const { id, messageId, address } = project
    const evidence = await request(project.path, { message_ids: [messageId] })
    assert.deepEqual(
      (({ status, progress, file }) => ({ status, progress, file }))(await show(project.path, evidence)),
      { status: 'queued', progress: 0, file: null },
    )
    await run()
    const shown = await show(project.path, evidence)
    assert.deepEqual(
      [shown.status, shown.progress, shown.problem, shown.file],
      ['ready', 100, null, `/v1/admin${project.path}/evidence/${evidence}/file`],
    )
    const file = await download(project.path, evidence)
    assert.equal(shown.size_bytes, Buffer.byteLength(file))
    const contents = contentsOf(file)
    assert.equal(shown.lines, contents.length)
    const [header] = contents
    assert.deepEqual(
      [
        header?.['type'],
        header?.['id'],
        header?.['project'].id,
        header?.['project'].name,
        header?.['made_with'],
      ],
      ['evidence', evidence, id, project.name, 'Postern 1.2.3'],
    )
    assert.equal(header?.['requested_by'].email, admin.email)
    const of = (type: string) => contents.filter((content) => content['type'] === type)
    assert.deepEqual(
      of('audit').map(({ seq, operation }) => [seq, operation]),
      [
        [1, 'projects.create'],
        [2, 'members.create'],
        [3, 'interventions.create'],
        [4, 'projects.edit'],
      ],
    )
    assert.deepEqual(
      of('intervention').map(({ kind, reason, pace_per_hour }) => [kind, reason, pace_per_hour]),
      [
        ['pace', 'Complaints', 5],
        ['lock', 'Spam', null],
      ],
    )
    const days = of('day')
    assert.deepEqual([days.length >= 2, days.at(-1)?.['sent'], days.at(-1)?.['bounced']], [true, 900, 70])
    const [message] = of('message')
    assert.deepEqual(
      [message?.['id'], message?.['message'].recipients[0].address, message?.['is_complete']],
      [messageId, address, true],
    )
    assert.deepEqual(
      message?.['attempts'].map(({ attempt, outcome, host, queue_id }: Record<string, unknown>) => [
        ...[attempt, outcome, host, queue_id],
      ]),
      [
        [1, 'deferred', 'mta1.example.com', '4X1'],
        [2, 'sent', 'mta1.example.com', '4X2'],
      ],
    )
    assert.deepEqual(
      message?.['events'].map(({ type }: { type: string }) => type),
      ['message.sent'],
    )
    const { ok, signed, acts, first_bad, notes } = await verify(file)
    assert.deepEqual(
      { ok, signed, acts, first_bad, notes },
      { ok: true, signed: true, acts: 4, first_bad: null, notes: [] },
    )
  })

  test('includes the entries directly before and after the range, which show that none is missing', async () => {
    const { id, path: at } = await makeHistory()
    for (const name of ['One', 'Two', 'Three', 'Four']) await admin.patch(at, { name, reason: 'Wanted' })
    const times = await database.query<{ seq: number; at: Date }>(
      'select seq::int, at from control.audit where chain = $1 order by seq',
      [id],
    )
    const timeOf = (seq: number) => times.find((row) => row.seq === seq)?.at ?? assert.fail()
    // Timestamps in requests have milliseconds.
    const evidence = await request(at, {
      from: new Date(timeOf(4).getTime()).toISOString(),
      to: new Date(timeOf(6).getTime() + 1).toISOString(),
    })
    await run()
    const file = await download(at, evidence)
    const seqs = contentsOf(file).flatMap(({ type, seq }) => (type === 'audit' ? [seq as number] : []))
    assert.ok(seqs[0] !== undefined && seqs[0] <= 3, String(seqs))
    assert.ok((seqs.at(-1) ?? 0) >= 7, String(seqs))
    const { ok, signed } = await verify(file)
    assert.deepEqual([ok, signed], [true, true])
  })

  test('makes a file without acts and messages', async () => {
    const { id, path: at } = await makeHistory()
    const evidence = await request(at, { from: '2020-01-01T00:00:00Z', to: '2020-01-02T00:00:00Z' })
    await run()
    const file = await download(at, evidence)
    const { ok, acts, evidence: about } = await verify(file)
    // The first act after the range, and those up to the row that the checkpoint signs.
    assert.deepEqual([ok, acts, about?.project_id], [true, 4, id])
  })

  test('continues where another one was killed, and the file is the same as without the interruption', async () => {
    const { path: at, messageId } = await makeHistory()
    const evidence = await request(at, { message_ids: [messageId] })
    let kills = 0
    for (let n = 0; n < 30; n++) {
      for (const point of points) {
        const dying = killedAt(deps.db, point, n % 4, () => kills++)
        await run({ db: dying }).catch((error) => assert.ok(error instanceof Killed, String(error)))
      }
    }
    assert.ok(kills > 5, `${kills} kills`)
    await run()
    assert.equal((await show(at, evidence)).status, 'ready')
    const { ok, signed, acts } = await verify(await download(at, evidence))
    assert.deepEqual([ok, signed, acts], [true, true, 4])
  })

  test('shares the work with others', async () => {
    const { path: at, messageId } = await makeHistory()
    const evidence = await request(at, { message_ids: [messageId] })
    await Promise.all(Array.from({ length: 4 }, () => run()))
    await run()
    assert.equal((await verify(await download(at, evidence))).ok, true)
  })

  test('writes that a message no longer exists', async () => {
    const { id, path: at, messageId } = await makeHistory()
    const evidence = await request(at, { message_ids: [messageId] })
    for (const table of ['attempts', 'recipients', 'events'])
      await database.query(`delete from mail.${table} where message_id = $1`, [messageId])
    await database.query('delete from mail.messages where project_id = $1 and id = $2', [id, messageId])
    await run()
    const messages = contentsOf(await download(at, evidence)).filter(({ type }) => type === 'message')
    assert.deepEqual(messages, [{ type: 'message', id: messageId, message: null }])
  })
})

describe('a file signed by `postern signer`', async () => {
  const login = `evidence_signer_${process.pid}`
  await database.query(`create role ${login} login noinherit in role postern_readonly`)
  cleanUp(async () => void (await database.query(`drop role ${login}`)))
  const url = database.superuserUrl.replace('postgres://postgres@', `postgres://${login}@`)
  const readonly = openDatabase({ ...database, url, cellUrl: undefined }).as('readonly')
  const key = signingKeyFrom({ id: 'signer-1', seed: Buffer.alloc(32, 7) })
  const socket = path.join(folder, 'socket')
  const file = path.join(folder, 'checkpoints')
  const signer = { socket, keys: publicKeyOf(key) }
  const open = async () =>
    serveSigner(await CheckpointSigner.open({ db: readonly, key, file, log: deps.log }), socket, deps.log)

  test('waits for the signer, and verifies from the disk with its public key alone', async () => {
    const { path: at, messageId } = await makeHistory()
    const evidence = await request(at, { message_ids: [messageId] })
    await run({ auditSigner: 'elsewhere' })
    assert.equal((await show(at, evidence)).status, 'signing')
    await assert.rejects(run({ auditSigner: signer }), /the signer at .* is unavailable/)
    assert.equal((await show(at, evidence)).status, 'signing')

    const listener = await open()
    cleanUp(() => listener.close())
    await run({ auditSigner: signer })
    const downloaded = path.join(folder, 'evidence.ndjson')
    await writeFile(downloaded, await download(at, evidence))
    const { ok, signed, first_bad, notes } = await verifyEvidenceFile(downloaded, signer.keys)
    assert.deepEqual([ok, signed, first_bad], [true, true, null])
    // When the worker without a signer chose the rows, no checkpoint covered them.
    assert.match(notes.join(), /^4 audit entries are not covered by the checkpoint/)
    // A key that only Postern's own user has.
    assert.match(
      (await verifyEvidenceFile(downloaded, keys)).first_bad?.problem ?? '',
      /The key "signer-1" is not known here/,
    )

    const covered = await request(at)
    await run({ auditSigner: signer })
    const complete = await verifyEvidence(linesOfText(await download(at, covered)), signer.keys)
    assert.deepEqual([complete.ok, complete.signed, complete.notes], [true, true, []])
    assert.deepEqual(
      logLines.filter((line) => !line.includes('no signed checkpoints yet')),
      [],
    )
  })
})
