import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { signEvidence } from '../core/control/audit/evidence-signature.ts'
import { signingKeyOf } from '../core/control/audit/keys.ts'
import { linesAfter, noLines } from '../core/control/evidence/lines.ts'
import { everyKind, recordEach } from '../testing/fixtures/audit-entries.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { openDatabase, testDatabase } from '../testing/harness/database.ts'
import { bareEnvironment, callPostern, program } from '../testing/harness/postern-process.ts'

/** `postern audit` as an operator runs it. */
const database = await testDatabase()
const db = openDatabase(database).as('admin')
const folder = await mkdtemp(path.join(tmpdir(), 'postern-audit-'))
cleanUp(() => rm(folder, { recursive: true }))
await recordEach(db, everyKind)

const checkpointFile = path.join(folder, 'checkpoints')
const env = {
  ...bareEnvironment,
  POSTERN_DATABASE_URL: database.url,
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_AUTH_SECRETS: `1:${'secret-of-the-audit-test-'.repeat(2)}`,
  POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
  POSTERN_AUDIT_CHECKPOINT_FILE: checkpointFile,
}

const inEnvironment =
  (environment: Record<string, string>) =>
  (...args: string[]) =>
    callPostern(environment, 'audit', ...args)
const audit = inEnvironment(env)
/** On another machine without any configuration. */
const elsewhere = inEnvironment(bareEnvironment)

const full = path.join(folder, 'full.ndjson')

describe('postern audit', () => {
  test('rejects invalid arguments', async () => {
    for (const args of [[], ['fly'], ['verify', '--fly'], ['erase', '--email', 'a@example.com']]) {
      const { status, stderr } = await audit(...args)
      assert.equal(status, 2, args.join(' '))
      assert.match(stderr, /Usage:\n {2}postern audit verify|Unknown option "--fly"|Missing option: --reason/)
    }
  })

  test('checkpoint signs new entries and appends to the file', async () => {
    const first = await audit('checkpoint')
    assert.deepEqual(first, {
      status: 0,
      stdout: `Checkpoints signed: 1.\nLines added to ${checkpointFile}: 1.\n`,
      stderr: '',
    })
    assert.deepEqual(JSON.parse((await audit('checkpoint', '--json')).stdout), {
      ...{ made: 0, file: checkpointFile, appended: 0 },
    })
    const again = await audit('checkpoint')
    assert.match(again.stdout, /^No new entries since the last checkpoint\.\nLines added to .*: 0\.\n$/)
  })

  test('verify accepts an unaltered audit log', async () => {
    const { status, stdout, stderr } = await audit('verify')
    assert.deepEqual({ status, stderr }, { status: 0, stderr: '' })
    assert.equal(
      stdout,
      'The audit log is intact (rows: 7, chains: 3, checkpoints: 1, erased persons: 0).\n' +
        'The activity log of projects and users has consistent hashes (rows: 0, chains: 0, erased entries: 0); it is not signed.\n',
    )
  })

  test('export never overwrites a file, and the file verifies on another machine with the printed key', async () => {
    assert.equal((await audit('export', '--out', full)).stdout, `Wrote ${full}.\n`)
    const twice = await audit('export', '--out', full)
    assert.equal(twice.status, 2)
    assert.match(twice.stderr, /already exists/)
    const key = (await audit('key')).stdout.trim()
    assert.match(key, /^1:[0-9a-f]{64}$/)

    const verified = await elsewhere(
      'verify',
      '--file',
      full,
      '--checkpoints',
      checkpointFile,
      '--public-key',
      key,
    )
    assert.equal(
      verified.stdout,
      'The audit log is intact (rows: 7, chains: 3, checkpoints: 1, erased persons: 0).\n',
    )
    const unsaid = await elsewhere('verify', '--file', full, '--json')
    const { first_bad, signed, rows } = JSON.parse(unsaid.stdout)
    assert.deepEqual([unsaid.status, first_bad, signed, rows], [3, null, false, 7])
    assert.match((await audit('export', '--json')).stderr, /--json requires --out/)
    const keyless = await elsewhere('verify', '--file', full)
    assert.equal(keyless.status, 3)
    assert.match(
      keyless.stdout,
      /^NOT PROVED\. The hashes are consistent, but no signature was checked.*Note: Signatures were not checked/s,
    )
    const unsigned = path.join(folder, 'unsigned.ndjson')
    const rowsAlone = (await readFile(full, 'utf8'))
      .replace(/\{"type":"checkpoint"[^\n]*\n/, '')
      .replace('"checkpoints":1', '"checkpoints":0')
    await writeFile(unsigned, rowsAlone)
    const stripped = await elsewhere('verify', '--file', unsigned, '--public-key', key)
    assert.deepEqual([stripped.status, stripped.stdout.slice(0, 11)], [3, 'NOT PROVED.'])
    const wrong = await elsewhere('verify', '--file', full, '--public-key', `1:${'00'.repeat(32)}`)
    assert.equal(wrong.status, 1)
    assert.match(wrong.stderr, /Checkpoint 1 in .* signature is invalid/)
    assert.match((await elsewhere('verify', '--file', '/nowhere')).stderr, /File not found: \/nowhere/)
    assert.equal((await elsewhere('verify', '--file', full, '--public-key', 'x')).status, 2)
  })

  test('verify accepts an evidence file with the printed key alone', async () => {
    const [key] = (await audit('key')).stdout.trim().split('\n')
    const signingKey = signingKeyOf({ id: '1', key: Buffer.from('5a'.repeat(32), 'hex') })
    const range = { from: '2026-11-01T00:00:00.000Z', to: '2026-11-02T00:00:00.000Z' }
    const header = { type: 'evidence', version: 1, id: 3, project: { id: 7 }, ...range }
    const { text, tail } = linesAfter(noLines, [header])
    const statement = { evidence_id: 3, project_id: 7, at: '2026-11-03T00:00:00.000Z', lines: 1 }
    const signature = signEvidence(signingKey, { ...statement, key_id: '1', hash: tail.hash })
    const last = linesAfter(tail, [{ type: 'signature', ...statement, key_id: '1', signature }]).text
    const evidence = path.join(folder, 'evidence.ndjson')
    await writeFile(evidence, text + last)

    const verified = await elsewhere('verify', '--evidence', evidence, '--public-key', key ?? '')
    assert.deepEqual(verified, {
      status: 0,
      stdout:
        'The file is intact and was signed at 2026-11-03T00:00:00.000Z (lines: 2, audit entries: 0).\n' +
        `Evidence 3 about project 7, ${range.from} to ${range.to}.\n`,
      stderr: '',
    })
    const keyless = await elsewhere('verify', '--evidence', evidence)
    assert.deepEqual([keyless.status, keyless.stdout.slice(0, 11)], [3, 'NOT PROVED.'])
    await writeFile(evidence, text.replace('2026-11-02', '2026-11-04') + last)
    const altered = await elsewhere('verify', '--evidence', evidence, '--public-key', key ?? '')
    assert.equal(altered.status, 1)
    assert.match(altered.stderr, /^The file was ALTERED\. Line 1: /)
    const asJson = await elsewhere('verify', '--evidence', evidence, '--public-key', key ?? '', '--json')
    assert.deepEqual([asJson.status, JSON.parse(asJson.stdout).first_bad.line], [1, 1])
    assert.equal((await elsewhere('verify', '--evidence', evidence, '--file', full)).status, 2)
  })

  test('verify prints no escape sequences of a forged evidence file', async () => {
    const range = { from: '2026-11-01T00:00:00.000Z', to: '2026-11-02T00:00:00.000Z' }
    const header = { type: 'evidence', version: 1, id: 3, project: { id: 7 }, ...range }
    const hidden = '\r\u001b[2K\u009b2J\u202eThe file is intact'
    const signature = { type: 'signature', evidence_id: 3, project_id: 7, lines: 1, key_id: hidden }
    const [key = ''] = (await audit('key')).stdout.trim().split('\n')
    for (const contents of [
      [{ ...header, from: hidden }],
      [header, { type: hidden }],
      [header, { ...signature, at: range.to, signature: '0'.repeat(128) }],
    ]) {
      const evidence = path.join(folder, 'forged.ndjson')
      await writeFile(evidence, linesAfter(noLines, contents).text)
      const { status, stdout, stderr } = await elsewhere(
        'verify',
        '--evidence',
        evidence,
        '--public-key',
        key,
      )
      assert.deepEqual([status, stdout], [1, ''])
      assert.match(stderr, /^The file was ALTERED\. [^\p{Cc}\p{Cf}]+\n$/u)
    }
  })

  test('export continues after an earlier one, and can be limited to one project', async () => {
    const { next } = JSON.parse((await readFile(full, 'utf8')).trimEnd().split('\n').at(-1) ?? '')
    await recordEach(db, everyKind.slice(0, 2))
    const since = path.join(folder, 'since.ndjson')
    assert.equal((await audit('export', '--out', since, '--after', next)).status, 0)
    const both = await elsewhere('verify', '--file', full, '--file', since)
    assert.match(both.stdout, /rows: 9, chains: 3/)
    assert.match(
      (await audit('export', '--project', '8')).stdout,
      /^({"type":"audit","chain":8,[^\n]*\n){3}{"type":"end"/,
    )
    for (const wrong of [
      ['--project', 'x'],
      ['--after', 'x'],
      ['--after', '9:1:'],
      ['--after', '900000000000:900000000000:'],
    ]) {
      const { status, stderr } = await audit('export', ...wrong)
      assert.equal(status, 2, wrong.join(' '))
      assert.ok(!stderr.includes('    at '), stderr)
    }
  })

  test('export to a closed pipe ends without an error', async () => {
    const child = spawn(process.execPath, [program, 'audit', 'export'], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stderr = ''
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    child.stdout.destroy()
    const [status] = await once(child, 'exit')
    assert.deepEqual({ status, stderr }, { status: 0, stderr: '' })
  })

  test('verify names the altered entry, in the database or in a file, with exit code 1', async () => {
    const altered = path.join(folder, 'altered.ndjson')
    await writeFile(altered, (await readFile(full, 'utf8')).replace('ticket 12', 'ticket 13'))
    const inFile = await elsewhere('verify', '--file', altered)
    assert.equal(inFile.status, 1)
    assert.match(
      inFile.stderr,
      /The audit log was ALTERED\. Row 2 of chain 7 was altered: its hash does not match its content/,
    )

    await database.query('alter table control.audit disable trigger all')
    await database.query(`update control.audit set reason = 'another' where chain = 7 and seq = 2`)
    const online = await audit('verify')
    assert.equal(online.status, 1)
    assert.match(online.stderr, /Row 2 of chain 7 was altered/)
    await database.query(
      `update control.audit set reason = 'asked by the customer, ticket 12' where chain = 7 and seq = 2`,
    )
    assert.equal((await audit('verify')).status, 0)
  })

  test('erase removes a person, records it without naming them, and leaves the log verifiable', async () => {
    const named = await audit(
      'erase',
      '--email',
      'bob@example.com',
      '--reason',
      'Bob@example.com asked for it',
    )
    assert.equal(named.status, 2)
    assert.match(named.stderr, /do not include the address in it/)
    for (const reason of [' ', 'two\nlines', 'x'.repeat(501)]) {
      const refused = await audit('erase', '--email', 'bob@example.com', '--reason', reason)
      assert.equal(refused.status, 2)
      assert.match(refused.stderr, /^"reason" (is|contains) [^\n]*\.\n$/)
    }
    const { stdout } = await audit('erase', '--email', 'bob@example.com', '--reason', 'asked for it')
    assert.equal(stdout, 'Audit entries from which bob@example.com was erased: 1.\n')
    const again = await audit('erase', '--email', 'bob@example.com', '--reason', 'asked for it')
    assert.equal(again.stdout, 'The audit log does not contain bob@example.com.\n')
    const rows = await database.query(
      `select chain::int, actor_kind, operation, reason, after from control.audit where operation = 'audit.erase'`,
    )
    assert.deepEqual(rows, [
      { chain: 0, actor_kind: 'shell', operation: 'audit.erase', reason: 'asked for it', after: { rows: 1 } },
    ])
    assert.match((await audit('verify')).stdout, /erased persons: 1\)/)
    assert.ok(!(await audit('export')).stdout.includes('bob@'))
  })

  test('verify detects a removed checkpoint file, and checkpoint starts a new one with a warning', async () => {
    await rename(checkpointFile, `${checkpointFile}.removed`)
    const removed = await audit('verify')
    assert.equal(removed.status, 1)
    assert.match(removed.stderr, /is missing or empty, although checkpoints exist/)
    const { status, stdout, stderr } = await audit('checkpoint')
    assert.equal(status, 0)
    assert.match(stdout, /Checkpoints signed: 1\.\nLines added to .*: 1\./)
    assert.match(stderr, /A new file begins with checkpoint 2\. Unless the file was configured only recently/)
    assert.match((await audit('verify')).stdout, /Note: .* begins with checkpoint 2/)
  })
})
