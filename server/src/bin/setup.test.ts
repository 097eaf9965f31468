import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { promisify, stripVTControlCharacters } from 'node:util'
import pg from 'pg'
import { loadConfig } from '../config/config.ts'
import { signerKey } from '../config/values.ts'
import { publicKeyOf, signingKeyFrom, writeKeys } from '../core/control/audit/keys.ts'
import type { CheckResult } from '../doctor/run-checks.ts'
import { cleanUp } from '../testing/harness/cleanup.ts'
import {
  bareEnvironment,
  callPostern,
  program,
  runPostern,
  startPostern,
} from '../testing/harness/postern-process.ts'
import { startCluster } from '../testing/peers/postgres.ts'

/**
 * The directories of one machine. The user exists on every machine; files are owned by root, so this test must run as
 * root.
 */
const home = await mkdtemp(path.join(tmpdir(), 'postern-setup-'))
cleanUp(() => rm(home, { recursive: true, force: true }))
const folders = {
  directory: path.join(home, 'etc'),
  systemd: path.join(home, 'systemd'),
  postfix: path.join(home, 'postfix'),
}
await mkdir(folders.systemd)
await mkdir(folders.postfix)
await writeFile(path.join(folders.postfix, 'main.cf'), 'myhostname = old\n')

const places = Object.entries(folders).flatMap(([name, folder]) => [`--${name}`, folder])
const users = ['--user', 'nobody', '--signer-user', 'daemon', '--migrate-user', 'bin']
const setup = (...args: string[]) =>
  callPostern(bareEnvironment, ...['setup', '--write-only', ...users], ...[...places, ...args])
const host = ['--host', 'mail.example.org']
const read = (folder: keyof typeof folders, name: string) =>
  readFile(path.join(folders[folder], name), 'utf8')

const settingsIn = async (name: string): Promise<Record<string, string>> =>
  Object.fromEntries(
    (await read('directory', name))
      .split('\n')
      .filter((line) => /^POSTERN_/.test(line))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )

const publicHalf = (text: string): string => {
  const seed = signerKey(text.trim())
  return seed ? (writeKeys(publicKeyOf(signingKeyFrom(seed)))[0] ?? '') : ''
}

describe('postern setup', () => {
  it('writes complete settings with new random secrets', async () => {
    const { status, stdout } = await setup(...host)
    assert.equal(status, 0)
    assert.match(stdout, /systemctl enable --now postern/)
    const config = loadConfig(await settingsIn('postern.env'))
    assert.equal(config.publicUrl.origin, 'https://mail.example.org')
    assert.equal(config.returnPathHost, 'bounces.mail.example.org')
    assert.equal(config.systemMailFrom, 'postern@mail.example.org')
    assert.match(stdout, /^ {2}bounces\.mail\.example\.org {2}MX {2}10 mail\.example\.org$/m)
    assert.match(stdout, / {2}PTR {2}mail\.example\.org$/m)
    assert.match(config.databaseUrl, /^postgres:\/\/nobody@localhost\/postern\?host=/)
    assert.notEqual(await read('directory', 'auth-secrets'), await read('directory', 'master-keys'))
    for (const name of ['auth-secrets', 'master-keys', 'postern.env']) {
      const { mode, uid } = await stat(path.join(folders.directory, name))
      assert.deepEqual([mode & 0o777, uid], [0o640, 0], name)
    }
    for (const name of ['signer-key', 'signer.env', 'migrate.env']) {
      const { mode, uid, gid } = await stat(path.join(folders.directory, name))
      assert.deepEqual([mode & 0o777, uid, gid], [0o600, 0, 0], name)
    }
    assert.equal(config.signerKey, undefined)
    assert.deepEqual(writeKeys(config.auditPublicKeys), [publicHalf(await read('directory', 'signer-key'))])
    assert.equal((await stat(folders.directory)).mode & 0o777, 0o750)
  })

  it('writes units with the chosen users and directory', async () => {
    const unit = await read('systemd', 'postern.service')
    assert.match(unit, /^User=nobody\nGroup=nobody$/m)
    assert.ok(unit.includes(`EnvironmentFile=${folders.directory}/postern.env`))
    assert.doesNotMatch(unit, /[:=-]\/etc\/postern/)
    assert.match(await read('systemd', 'postern-signer.service'), /^User=daemon\nGroup=daemon$/m)
    assert.match(await read('systemd', 'postern-migrate.service'), /^User=bin\nGroup=bin$/m)
  })

  it('passes the checks of doctor for logins and checkpoints', async () => {
    const cluster = await startCluster()
    cleanUp(() => cluster.stop())
    const { host } = new URL(cluster.url)
    const state = path.join(home, 'signer')
    await mkdir(state)
    /** On another port, without the system users, and outside /run and /var. */
    const here = (settings: Record<string, string>) =>
      Object.fromEntries(
        Object.entries(settings).map(([name, value]) => [
          name,
          value
            .replace(/@localhost\/postern\?host=.*$/, `@${host}/postern`)
            .replace(/^\/(run|var\/lib)\/postern-signer/, state),
        ]),
      )
    const settings = here(await settingsIn('postern.env'))
    const env = { ...bareEnvironment, ...settings, POSTERN_BOUNCE_PORT: '0' }
    const make = () =>
      promisify(execFile)('psql', [
        '--quiet',
        '--file',
        path.join(folders.directory, 'database.sql'),
        cluster.url,
      ])
    await make()
    await make()
    await runPostern({ ...env, ...here(await settingsIn('migrate.env')) }, 'migrate')
    await startPostern(
      'signer',
      {
        ...{ ...bareEnvironment, ...here(await settingsIn('signer.env')) },
        POSTERN_SIGNER_KEY_FILE: path.join(folders.directory, 'signer-key'),
      },
      ['signing'],
    )
    await runPostern(env, 'admin', 'create', '--email', 'ada@example.com')
    await runPostern(env, 'audit', 'checkpoint')
    const { stdout } = await callPostern(env, 'doctor', '--json')
    const results = (JSON.parse(stdout) as CheckResult[]).filter(({ check }) =>
      /^(configuration|database\.(login|roles|migrations)|audit\.)/.test(check),
    )
    assert.deepEqual(
      results.map(({ check, level }) => [check, level]),
      [
        ...['configuration', 'database.login', 'database.roles', 'database.migrations'],
        ...['audit.checkpoints', 'audit.file', 'audit.signer'],
      ].map((check) => [check, 'ok']),
      stdout,
    )
    assert.match(await runPostern(env, 'audit', 'verify'), /^The audit log is intact/)

    const login = new pg.Client({ connectionString: settings['POSTERN_DATABASE_URL'] ?? '' })
    await login.connect()
    try {
      for (const role of ['admin', 'customer', 'mail', 'identity']) {
        await login.query(`set role postern_${role}`)
        for (const table of ['audit', 'audit_checkpoints'])
          for (const change of [
            `update control.${table} set hash = hash`,
            `delete from control.${table}`,
            `truncate control.${table}`,
            `alter table control.${table} disable trigger all`,
            `drop table control.${table}`,
          ])
            await assert.rejects(login.query(change), /permission denied|must be owner/, `${role}: ${change}`)
        await login.query('reset role')
      }
      await assert.rejects(login.query('set role postern_owner'), /permission denied to set role/)
    } finally {
      await login.end()
    }
  })

  it("revokes the owner role from the application's login", async () => {
    const cluster = await startCluster()
    cleanUp(() => cluster.stop())
    const sql = path.join(folders.directory, 'database.sql')
    const psql = (...args: string[]) =>
      promisify(execFile)('psql', ['--quiet', '--no-align', '--tuples-only', cluster.url, ...args])
    await psql('--file', sql)
    await psql('--command', 'grant postern_owner to nobody')
    await psql('--file', sql)
    const { stdout } = await psql('--command', `select pg_has_role('nobody', 'postern_owner', 'member')`)
    assert.equal(stdout.trim(), 'f')
  })

  it('prints the signer settings that an older file lacks', async () => {
    const file = path.join(folders.directory, 'postern.env')
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replaceAll(/^POSTERN_AUDIT_.*\n/gm, ''))
    const { stdout } = await setup(...host)
    assert.match(stdout, /has no settings for the audit signer\. Add:\n {2}POSTERN_AUDIT_SIGNER_SOCKET=/)
    await writeFile(file, text)
    assert.doesNotMatch((await setup(...host)).stdout, /has no settings/)
  })

  it('keeps a backup of the Postfix configuration', async () => {
    assert.equal(await read('postfix', 'main.cf.before-postern'), 'myhostname = old\n')
    assert.match(await read('postfix', 'main.cf'), /^smtpd_relay_restrictions = permit_mynetworks, reject$/m)
  })

  it('keeps secrets and edited files when it runs again', async () => {
    const secret = await read('directory', 'master-keys')
    await writeFile(path.join(folders.postfix, 'main.cf'), 'myhostname = changed\n')
    await writeFile(path.join(folders.systemd, 'postern.service'), 'of an older version\n')
    const { stdout } = await setup(...host)
    assert.equal(await read('directory', 'master-keys'), secret)
    assert.equal(await read('postfix', 'main.cf'), 'myhostname = changed\n')
    assert.equal(await read('postfix', 'main.cf.before-postern'), 'myhostname = old\n')
    assert.deepEqual(stdout.match(/^wrote .*$/gm), [`wrote    ${folders.systemd}/postern.service`])
  })

  it('asks for what is not given, and repeats a question after an invalid answer', async () => {
    const asked = { ...folders, directory: path.join(home, 'asked') }
    const given = Object.entries(asked).flatMap(([name, folder]) => [`--${name}`, folder])
    const line = [program, 'setup', '--write-only', ...users, ...given]
    const terminal = spawn(
      'script',
      ['--quiet', '--return', '--command', [process.execPath, ...line].join(' '), '/dev/null'],
      {
        env: bareEnvironment,
      },
    )
    const dialogue: [question: RegExp, answer: string][] = [
      [/Host name of this installation.*: $/, 'no host'],
      [/must be a host name[\s\S]*Host name of this installation.*: $/, 'mail.example.com'],
      [/Host that receives bounces \[bounces\.mail\.example\.com\]: $/, 'returns.example.com'],
      [/Reverse proxy for HTTPS .*: $/, 'none'],
      [/Sender of invitations and password links \[postern@mail\.example\.com\]: $/, ''],
    ]
    let shown = ''
    terminal.stdout.on('data', (chunk: Buffer) => {
      shown += stripVTControlCharacters(chunk.toString())
      const [next] = dialogue
      if (!next?.[0].test(shown)) return
      dialogue.shift()
      shown = ''
      terminal.stdin.write(`${next[1]}\r`)
    })
    const [code] = await once(terminal, 'close')
    assert.equal(code, 0, shown)
    assert.deepEqual(dialogue, [])
    const text = await readFile(path.join(asked.directory, 'postern.env'), 'utf8')
    assert.match(text, /^POSTERN_PUBLIC_URL=https:\/\/mail\.example\.com$/m)
    assert.match(text, /^POSTERN_RETURN_PATH_HOST=returns\.example\.com$/m)
    assert.match(text, /^POSTERN_SYSTEM_MAIL_FROM=postern@mail\.example\.com$/m)
  })

  it('rejects invalid arguments', async () => {
    for (const [args, sentence] of [
      [['--host', 'mail.example.org/console'], /--host must be/],
      [
        ['--host', 'mail.example.org', '--front-end', 'apache'],
        /--front-end must be one of caddy, nginx, none/,
      ],
      [[...host, '--user', 'nobody-of-that-name'], /useradd --system/],
    ] as const) {
      const { status, stderr } = await setup(...args)
      assert.equal(status, 2)
      assert.match(stderr, sentence)
    }
  })
})
