import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { before, describe, test } from 'node:test'
import { publicKeyOf, signingKeyFrom, writeKeys } from '../core/control/audit/keys.ts'
import { auditEntry, recordEach } from '../testing/fixtures/audit-entries.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import { openDatabase, testDatabase } from '../testing/harness/database.ts'
import { killOnExit } from '../testing/harness/kill-on-exit.ts'
import { bareEnvironment, callPostern, program } from '../testing/harness/postern-process.ts'

/**
 * `postern signer` runs as one user, and the rest of Postern runs as another user in the signer's group. Both users
 * exist on every machine. Only root can switch to them, so each process starts as root and drops its privileges
 * immediately.
 */
interface Identity {
  uid: number
  gid: number
  groups: number[]
}
const signerUser: Identity = { uid: 1, gid: 1, groups: [] }
const posternUser: Identity = { uid: 65534, gid: 65534, groups: [1] }
const stranger: Identity = { uid: 2, gid: 2, groups: [] }

const home = await mkdtemp(path.join(tmpdir(), 'postern-signer-process-'))
cleanUp(() => rm(home, { recursive: true, force: true }))
const state = path.join(home, 'state')
const keyFile = path.join(home, 'signer-key')
const places = {
  POSTERN_AUDIT_SIGNER_SOCKET: path.join(state, 'socket'),
  POSTERN_AUDIT_CHECKPOINT_FILE: path.join(state, 'checkpoints'),
}

const database = await testDatabase()
const db = openDatabase(database).as('admin')
const login = `signer_process_${process.pid}`
await database.query(`create role ${login} login noinherit in role postern_readonly`)
cleanUp(async () => void (await database.query(`drop role ${login}`)))

const seed = 'c5'.repeat(32)
const [publicKey = ''] = writeKeys(
  publicKeyOf(signingKeyFrom({ id: 'signer-1', seed: Buffer.from(seed, 'hex') })),
)
/** An installation without a signer: the master key signs. */
const withoutSigner = {
  ...{ PATH: bareEnvironment['PATH'] ?? '', POSTERN_DATABASE_URL: database.url },
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_AUTH_SECRETS: `1:${'secret-of-the-signer-test-'.repeat(2)}`,
  POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
}
const env = { ...withoutSigner, ...places, POSTERN_AUDIT_PUBLIC_KEYS: publicKey }

/** A copy of the built program: other users cannot read the directory that contains the original. */
const copy = path.join(home, 'program')
const becoming = ({ uid, gid, groups }: Identity): string =>
  `data:text/javascript,process.setgroups(${JSON.stringify(groups)});process.setgid(${gid});process.setuid(${uid})`
const argsOf = (who: Identity, ...args: string[]): string[] => [
  ...['--import', becoming(who), path.join(copy, path.basename(program))],
  ...args,
]

interface Ended {
  status: number
  printed: string
}
const run = (who: Identity, environment: Record<string, string>, ...args: string[]): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(process.execPath, argsOf(who, ...args), { env: environment, cwd: '/' }, (error, out, err) =>
      resolve({ status: error ? Number(error.code) : 0, printed: `${out}${err}` }),
    )
  })
/** Whether the script succeeds in a shell that runs as this user. */
const mayDo = (who: Identity, script: string): Promise<boolean> =>
  new Promise((resolve) => {
    const groups = who.groups.length > 0 ? `--groups=${who.groups.join()}` : '--clear-groups'
    const args = [`--reuid=${who.uid}`, `--regid=${who.gid}`, groups, 'sh', '-c', script]
    execFile('setpriv', args, { cwd: '/' }, (error) => resolve(error === null))
  })

let signer: ChildProcess

before(async () => {
  await chmod(home, 0o755)
  await cp(path.dirname(program), copy, { recursive: true })
  await mkdir(state)
  await chown(state, signerUser.uid, signerUser.gid)
  await chmod(state, 0o750)
  await writeFile(keyFile, `signer-1:${seed}\n`, { mode: 0o600 })
  await chown(keyFile, signerUser.uid, signerUser.gid)
  signer = spawn(process.execPath, argsOf(signerUser, 'signer'), {
    cwd: '/',
    env: {
      ...{ PATH: bareEnvironment['PATH'] ?? '', ...places, POSTERN_SIGNER_KEY_FILE: keyFile },
      POSTERN_SIGNER_DATABASE_URL: database.superuserUrl.replace('//postgres@', `//${login}@`),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  killOnExit(signer)
  cleanUp(async () => void signer.kill('SIGKILL'))
  for await (const line of createInterface({ input: signer.stdout ?? assert.fail() }))
    if (JSON.parse(line).msg === 'signing') break
  signer.stdout?.resume()
  await recordEach(db, [auditEntry(), auditEntry({ projectId: null })])
})

describe('postern signer, as a separate user', () => {
  test("signs for Postern's user, who verifies with the public key", async () => {
    const signed = await run(posternUser, env, 'audit', 'checkpoint')
    assert.deepEqual(signed, { status: 0, printed: 'Checkpoints signed: 1.\n' })
    const { status, printed } = await run(posternUser, env, 'audit', 'verify')
    assert.equal(status, 0, printed)
    assert.match(printed, /^The audit log is intact/)
    assert.equal((await run(posternUser, env, 'audit', 'key')).printed.trim(), publicKey)
  })

  test("protects its key, its memory and its checkpoints from Postern's user", async () => {
    const { POSTERN_AUDIT_CHECKPOINT_FILE: file, POSTERN_AUDIT_SIGNER_SOCKET: socket } = places
    assert.ok(await mayDo(signerUser, `cat ${keyFile}`), 'the test can tell the difference')
    assert.ok(await mayDo(posternUser, `cat ${file}`), 'verification reads the checkpoints')
    for (const attempt of [
      `cat ${keyFile}`,
      `cat /proc/${signer.pid}/environ`,
      `head -c 1 /proc/${signer.pid}/mem`,
      `kill -0 ${signer.pid}`,
      `echo >> ${file}`,
      `rm -f ${file}`,
      `mv ${file} ${file}.old`,
      `rm -f ${socket}`,
      `touch ${state}/new`,
    ])
      assert.equal(await mayDo(posternUser, attempt), false, attempt)
  })

  test('rejects users who are not in its group', async () => {
    await recordEach(db, [auditEntry()])
    const { status, printed } = await run(stranger, env, 'audit', 'checkpoint')
    assert.notEqual(status, 0)
    assert.match(printed, /the signer at .* is unavailable: connect EACCES/)
    assert.equal((await run(posternUser, env, 'audit', 'checkpoint')).status, 0)
  })

  test("a checkpoint that Postern's user signs does not verify, and the signer does not continue from it", async () => {
    const file = await readFile(places.POSTERN_AUDIT_CHECKPOINT_FILE, 'utf8')
    await recordEach(db, [auditEntry()])
    assert.equal((await run(posternUser, withoutSigner, 'audit', 'checkpoint')).status, 0)
    const { status, printed } = await run(posternUser, env, 'audit', 'verify')
    assert.equal(status, 1)
    assert.match(printed, /The audit log was ALTERED\. .* key "1", which is not known here/)
    await recordEach(db, [auditEntry()])
    const refused = await run(posternUser, env, 'audit', 'checkpoint')
    assert.notEqual(refused.status, 0)
    assert.match(refused.printed, /Checkpoint 4 does not follow checkpoint 2/)
    assert.equal(await readFile(places.POSTERN_AUDIT_CHECKPOINT_FILE, 'utf8'), file)
  })

  test('does not start without its settings', async () => {
    const { status, stderr } = await callPostern({ ...bareEnvironment, ...places }, 'signer')
    assert.equal(status, 2)
    assert.match(stderr, /POSTERN_SIGNER_KEY is not set/)
    assert.match(stderr, /POSTERN_SIGNER_DATABASE_URL is not set/)
  })

  test('stops on SIGTERM', async () => {
    const ended = once(signer, 'exit')
    signer.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  })
})
