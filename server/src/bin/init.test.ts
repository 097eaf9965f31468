import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { loadConfig } from '../config.ts'
import { cleanUp } from '../testing/cleanup.ts'
import { bareEnvironment, callPostern } from '../testing/postern-process.ts'

/** A machine's folders. The user is one that every machine has; the owner of files is root, who alone can run this. */
const home = await mkdtemp(path.join(tmpdir(), 'postern-init-'))
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
const init = (...args: string[]) =>
  callPostern(bareEnvironment, 'init', '--user', 'nobody', ...places, ...args)
const url = ['--public-url', 'https://mail.example.org']
const read = (folder: keyof typeof folders, name: string) =>
  readFile(path.join(folders[folder], name), 'utf8')

describe('postern init', () => {
  it('writes settings that are complete, with secrets of which nobody knows', async () => {
    const { status, stdout } = await init(...url)
    assert.equal(status, 0)
    assert.match(stdout, /systemctl enable --now postern/)
    const env = Object.fromEntries(
      (await read('directory', 'postern.env'))
        .split('\n')
        .filter((line) => /^POSTERN_/.test(line))
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    )
    const config = loadConfig(env)
    assert.equal(config.publicUrl.origin, 'https://mail.example.org')
    assert.match(config.databaseUrl, /^postgres:\/\/nobody@localhost\/postern\?host=/)
    assert.notEqual(await read('directory', 'auth-secrets'), await read('directory', 'master-keys'))
    for (const name of ['auth-secrets', 'master-keys', 'postern.env']) {
      const { mode, uid } = await stat(path.join(folders.directory, name))
      assert.deepEqual([mode & 0o777, uid], [0o640, 0], name)
    }
    assert.equal((await stat(folders.directory)).mode & 0o777, 0o750)
  })

  it('writes units for that user, and that place', async () => {
    const unit = await read('systemd', 'postern.service')
    assert.match(unit, /^User=nobody\nGroup=nobody$/m)
    assert.ok(unit.includes(`EnvironmentFile=${folders.directory}/postern.env`))
    assert.doesNotMatch(unit, /[:=-]\/etc\/postern/)
  })

  it('puts aside what Postfix had', async () => {
    assert.equal(await read('postfix', 'main.cf.before-postern'), 'myhostname = old\n')
    assert.match(await read('postfix', 'main.cf'), /^smtpd_relay_restrictions = permit_mynetworks, reject$/m)
  })

  it('makes nothing twice, and keeps what an operator changed', async () => {
    const secret = await read('directory', 'master-keys')
    await writeFile(path.join(folders.postfix, 'main.cf'), 'myhostname = changed\n')
    await writeFile(path.join(folders.systemd, 'postern.service'), 'of an older version\n')
    const { stdout } = await init(...url)
    assert.equal(await read('directory', 'master-keys'), secret)
    assert.equal(await read('postfix', 'main.cf'), 'myhostname = changed\n')
    assert.equal(await read('postfix', 'main.cf.before-postern'), 'myhostname = old\n')
    assert.deepEqual(stdout.match(/^wrote .*$/gm), [`wrote    ${folders.systemd}/postern.service`])
  })

  it('says what is missing', async () => {
    for (const [args, sentence] of [
      [[], /Missing: --public-url/],
      [['--public-url', 'http://mail.example.org'], /--public-url must begin with https/],
      [[...url, '--user', 'nobody-of-that-name'], /useradd --system/],
    ] as const) {
      const { status, stderr } = await init(...args)
      assert.equal(status, 2)
      assert.match(stderr, sentence)
    }
  })
})
