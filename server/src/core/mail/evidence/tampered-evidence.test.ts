import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  contentsOf,
  evidenceFixtures,
  linesOfText,
  masterSigningKey,
} from '../../../testing/fixtures/evidence.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { signedIn } from '../../../testing/harness/client.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { Chance, seed } from '../../../testing/harness/random.ts'
import { CheckpointVerifier } from '../../control/audit/checkpoint-verifier.ts'
import { signEvidence } from '../../control/audit/evidence-signature.ts'
import { lineOfFile } from '../../control/audit/export-lines.ts'
import { publicKeyOf, signHash, signingKeyFrom } from '../../control/audit/keys.ts'
import { linesAfter, noLines } from '../../control/evidence/lines.ts'
import { verifyEvidence } from '../../control/evidence/verify.ts'

/** Random changes to an evidence file. Every one must be found. `POSTERN_TEST_CASES` sets the number. */
const cases = Number(process.env['POSTERN_TEST_CASES'] ?? 500)

const database = await testDatabase()
const admin = await signedIn(await startApi(database))
const { makeHistory, request, run, download } = evidenceFixtures(database, admin)
const keys = publicKeyOf(masterSigningKey)
const verify = (file: string | Buffer) => verifyEvidence(linesOfText(file), keys)

const { path, messageId } = await makeHistory()
const evidence = await request(path, { message_ids: [messageId] })
await run()
const file = Buffer.from(await download(path, evidence))
const lines = file.toString().trimEnd().split('\n')
const joined = (all: readonly string[]) => `${all.join('\n')}\n`
const lineAt = (offset: number) => file.subarray(0, offset).filter((byte) => byte === 0x0a).length + 1

const chance = new Chance(seed)

describe('an altered file', () => {
  test('is intact before', async () => {
    const { ok, signed } = await verify(file)
    assert.deepEqual([ok, signed], [true, true])
    const types = new Set(contentsOf(file.toString()).map(({ type }) => type))
    assert.deepEqual(
      [...types],
      ['evidence', 'checkpoint', 'audit', 'intervention', 'day', 'message', 'signature'],
    )
  })

  test(`is found for ${cases} random changes of one byte, with the line (seed ${seed})`, async () => {
    for (let done = 0; done < cases; done++) {
      const at = chance.below(file.length)
      const changed = Buffer.from(file)
      changed[at] = ((changed[at] ?? 0) + 1 + chance.below(255)) % 256
      const { ok, first_bad } = await verify(changed)
      const what = `byte ${at} (${file[at]} → ${changed[at]}) of line ${lineAt(at)}`
      assert.equal(ok, false, what)
      assert.equal(first_bad?.line, lineAt(at), `${what}: ${first_bad?.problem}`)
    }
  })

  test('is found for removed and added bytes', async () => {
    for (let done = 0; done < cases / 5; done++) {
      const at = chance.below(file.length)
      const removed = Buffer.concat([file.subarray(0, at), file.subarray(at + 1)])
      // Removing one of several equal bytes gives the same file for each of them.
      assert.equal((await verify(removed)).ok, false, `without byte ${at}`)
      const added = Buffer.concat([file.subarray(0, at), Buffer.from([chance.below(256)]), file.subarray(at)])
      assert.equal((await verify(added)).ok, false, `with a byte at ${at}`)
    }
    for (const end of ['\n', 'x', ' ', '\0', `${lines.at(-1)}\n`])
      assert.equal((await verify(file.toString() + end)).ok, false, `with ${JSON.stringify(end)} at the end`)
  })

  test('is found for each truncation', async () => {
    for (const [index] of lines.entries()) {
      const { ok, first_bad } = await verify(index === 0 ? '' : joined(lines.slice(0, index)))
      assert.deepEqual([ok, first_bad?.line], [false, index + 1])
    }
    assert.equal((await verify(file.subarray(0, -1))).ok, false)
  })

  test('is found for each missing, repeated, swapped or moved line', async () => {
    for (const [index, line] of lines.entries()) {
      const without = lines.toSpliced(index, 1)
      assert.deepEqual([index, (await verify(joined(without))).first_bad?.line], [index, index + 1])
      assert.equal((await verify(joined(lines.toSpliced(index, 0, line)))).ok, false)
      const other = (index + 1 + chance.below(lines.length - 1)) % lines.length
      const swapped = lines.with(index, lines[other] ?? '').with(other, line)
      assert.equal((await verify(joined(swapped))).first_bad?.line, Math.min(index, other) + 1)
    }
  })

  test('is found if all hashes were computed again, because the signature is missing or that of another key', async () => {
    const contents = contentsOf(file.toString())
    const altered = contents.map((content) =>
      content['type'] === 'day' ? { ...content, bounced: 0 } : content,
    )
    const { text } = linesAfter(noLines, altered)
    assert.match((await verify(text)).first_bad?.problem ?? '', /The signature is invalid/)
    const intruder = signingKeyFrom({ id: masterSigningKey.id, seed: Buffer.alloc(32, 9) })
    const { text: before, tail } = linesAfter(noLines, altered.slice(0, -1))
    const { type: _type, signature: _signature, ...shown } = contents.at(-1) ?? {}
    const statement = { ...shown, hash: tail.hash } as Parameters<typeof signEvidence>[1]
    const signature = { type: 'signature', ...shown, signature: signEvidence(intruder, statement) }
    const forged = before + linesAfter(tail, [signature]).text
    assert.match((await verify(forged)).first_bad?.problem ?? '', /The signature is invalid/)
    // The same with the right key is accepted, so it is the key that makes the difference.
    const right = { ...signature, signature: signEvidence(masterSigningKey, statement) }
    assert.equal((await verify(before + linesAfter(tail, [right]).text)).ok, true)
  })

  test('is found with the signature of a checkpoint, and evidence cannot sign a checkpoint', async () => {
    const contents = contentsOf(file.toString())
    const checkpoint = contents.find(({ type }) => type === 'checkpoint') ?? assert.fail()
    const last = contents.at(-1) ?? assert.fail()
    const hash = JSON.parse(lines.at(-1) ?? '').prev
    for (const signature of [checkpoint['signature'], signHash(masterSigningKey, hash)]) {
      const { text } = linesAfter(noLines, contents.with(-1, { ...last, signature }))
      assert.match((await verify(text)).first_bad?.problem ?? '', /The signature is invalid/)
    }
    const line = lineOfFile(JSON.stringify({ ...checkpoint, signature: last['signature'] })) ?? assert.fail()
    const checked = new CheckpointVerifier(keys, 'the test', { mayBeginLater: true }).check(line)
    assert.match('bad' in checked ? checked.bad.problem : '', /its signature is invalid/)
  })

  test('is found if an act was replaced and the file signed again, because the checkpoint signs the chain', async () => {
    const contents = contentsOf(file.toString())
    const resigned = (all: Record<string, unknown>[]) => {
      const { text, tail } = linesAfter(noLines, all.slice(0, -1))
      const { type: _type, signature: _signature, ...shown } = all.at(-1) ?? {}
      const statement = { ...shown, lines: tail.lines } as Omit<Parameters<typeof signEvidence>[1], 'hash'>
      const signature = signEvidence(masterSigningKey, { ...statement, hash: tail.hash })
      return text + linesAfter(tail, [{ type: 'signature', ...statement, signature }]).text
    }
    assert.equal((await verify(resigned(contents))).ok, true)
    const act = contents.findIndex(({ type }) => type === 'audit')
    const altered = contents.with(act, { ...contents[act], reason: 'Another reason' })
    assert.deepEqual((await verify(resigned(altered))).first_bad?.line, act + 1)
    const without = contents.toSpliced(act + 1, 1)
    assert.match(
      (await verify(resigned(without))).first_bad?.problem ?? '',
      /is missing: the next one is row 3/,
    )
    const later = await verify(resigned(contents.toSpliced(act, 1)))
    assert.match(
      later.notes.join(),
      /begin with number 2, which is in the range: earlier ones may be missing/,
    )
    const lastAct = contents.findLastIndex(({ type }) => type === 'audit')
    const truncated = contents.toSpliced(lastAct, 1)
    assert.match((await verify(resigned(truncated))).first_bad?.problem ?? '', /the chain was truncated here/)
  })

  test('is found in a signature that cannot be written as canonical JSON', async () => {
    const contents = contentsOf(file.toString())
    const last = contents.at(-1) ?? assert.fail()
    const { text } = linesAfter(noLines, contents.with(-1, { ...last, more: '\ud800' }))
    assert.match((await verify(text)).first_bad?.problem ?? '', /The signature is invalid/)
  })

  test('is not proved without a key', async () => {
    const { ok, signed, notes } = await verifyEvidence(linesOfText(file), new Map())
    assert.deepEqual([ok, signed], [true, false])
    assert.match(notes.join(), /The signature was not checked/)
  })
})
