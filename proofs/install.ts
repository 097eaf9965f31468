import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { debianPackage } from '../scripts/release/debian-package.ts'
import { currentVersion } from '../scripts/released/records.ts'
import { blocksOf } from './docs/blocks.ts'
import { openWorld, type World } from './install/internet.ts'
import { sendDuring } from './install/load.ts'
import { bootMachine, type Machine, makeImage } from './install/machine.ts'

/**
 * `npm run prove:install`: runs the exact commands in docs/guide/install.md on a clean Debian 12 system. It requires
 * root, mmdebstrap, systemd-container and knot. It also performs the operator's steps: it publishes the DNS records and
 * replaces `pk_live_…` with the printed key. Then it upgrades to a package with a further migration while mail is sent,
 * removes the package and purges it. With `-- --from <package>`, it installs that release and upgrades it to the package
 * of this state.
 */
const root = path.resolve(import.meta.dirname, '..')
const most = 5

const say = (line: string) => process.stdout.write(`${line}\n`)

/** All lines in the blocks marked to be run. */
const commandsOf = (page: string): string[] =>
  blocksOf(page)
    .filter(({ mark }) => mark?.isRun)
    .flatMap(({ text }) => text.trim().split('\n'))

async function prove(first: string, second: string): Promise<void> {
  const commands = commandsOf('docs/guide/install.md').map((command) =>
    command.replace(/postern_[\d.]+_amd64\.deb/, path.basename(first)),
  )
  assert.ok(commands.length > 0 && commands.length <= most, `${commands.length} commands`)
  const world = await openWorld()
  const machine = await bootMachine(first, second)
  try {
    const key = await follow(machine, world, commands)
    checkInstallation(machine)
    await checkUpgrade(machine, world, key, first, second)
    checkRemoval(machine)
  } catch (error) {
    say(journalOf(machine))
    throw error
  } finally {
    await machine.shutDown()
  }
  say(`First message sent with ${commands.length} commands.`)
}

/** Returns the API key. */
async function follow(machine: Machine, world: World, commands: string[]): Promise<string> {
  let key = ''
  for (const [index, command] of commands.entries()) {
    const isLast = index === commands.length - 1
    const began = performance.now()
    const type = () => machine.type(command.replace('pk_live_…', key))
    const printed = isLast ? await untilVerified(type) : type()
    say(`${index + 1}. ${command}\n   ${((performance.now() - began) / 1000).toFixed(1)} s`)
    key = /\bpk_live_\w+/.exec(printed)?.[0] ?? key
    const records = printed.match(/^ {2}\S+ {2}(TXT|CNAME|MX) {2}.+$/gm)
    if (records) await world.publish(records)
    // After the machine's Postfix has its own configuration: Debian's default listens on port 25 of all addresses.
    if (records && index === commands.length - 2) await world.openMailServer()
    if (isLast) await delivered(machine, world, JSON.parse(printed).id, key)
  }
  return key
}

async function untilVerified(send: () => string): Promise<string> {
  for (let attempt = 0; attempt < 90; attempt++) {
    const answer = send()
    if (JSON.parse(answer).error !== 'domain_not_verified') return answer
    await sleep(2000)
  }
  throw new Error('The domain was not verified within three minutes')
}

async function delivered(machine: Machine, world: World, id: string, key: string): Promise<void> {
  const readMessage = () =>
    JSON.parse(
      machine.type(`curl -s http://127.0.0.1:8080/v1/messages/${id} -H 'Authorization: Bearer ${key}'`),
    )
  for (let attempt = 0; attempt < 60 && readMessage().status !== 'delivered'; attempt++) await sleep(500)
  assert.equal(readMessage().status, 'delivered')
  const [mail, ...more] = world.received
  assert.deepEqual(more, [])
  assert.deepEqual(mail?.to, ['you@example.net'])
  assert.match(mail?.from ?? '', /^bounce-[a-z2-7]+@bounces\.shop\.example\.org$/)
  assert.match(mail?.raw ?? '', /^DKIM-Signature: /m)
}

/** Checks the state of the installation as an operator would. */
function checkInstallation(machine: Machine): void {
  assert.equal(machine.type('postern --settings /etc/postern/postern.env health').trim(), 'ready')
  for (const unit of ['postern', 'postern-signer', 'postfix@-', 'postgresql@15-main'])
    assert.equal(machine.type(`systemctl is-active ${unit}`).trim(), 'active', unit)
  const modes = machine.type('stat --format "%a %U:%G" /etc/postern /etc/postern/*').trim().split('\n')
  const [shared, own] = ['640 root:postern', '600 root:root']
  // The folder, auth-secrets, database.sql, master-keys, migrate.env, postern.env, signer-key, signer.env.
  assert.deepEqual(modes, ['750 root:postern', shared, '644 root:root', shared, own, shared, own, own])
  checkAudit(machine)
  const began = performance.now()
  machine.type('systemctl stop postern')
  assert.equal(machine.type('systemctl show --property=Result --value postern').trim(), 'success')
  say(`stopped in ${((performance.now() - began) / 1000).toFixed(1)} s`)
  assert.doesNotMatch(machine.type('postern setup'), /^wrote /m)
  assert.equal(machine.type('systemctl is-active postern').trim(), 'active')
}

/** A version with a migration is started only by the command that the package prints. */
async function checkUpgrade(
  machine: Machine,
  world: World,
  key: string,
  first: string,
  second: string,
): Promise<void> {
  const known = migrationsIn(first)
  const added = migrationsIn(second).filter((name) => !known.includes(name))
  const [, version = ''] = /^postern_(.+)_amd64\.deb$/.exec(path.basename(second)) ?? []
  const sent = await sendDuring(key, world, async () => {
    const printed = await machine.run(`apt-get install --yes ./${path.basename(second)} 2>&1`)
    for (const name of added) assert.ok(printed.includes(name), `${name} is not in: ${printed}`)
    const [restart] = /systemctl restart postern.*/.exec(printed) ?? []
    assert.equal(restart !== undefined, added.length > 0, printed)
    if (restart) await machine.run(restart)
    assert.equal((await machine.run('dpkg-query --show postern | cut -f 2')).trim(), version)
    assert.equal((await machine.run('postern health --wait 30')).trim(), 'ready')
  })
  const { accepted, lost, twice } = sent
  say(`upgraded: ${accepted} messages accepted during the upgrade, ${lost} lost, ${twice} received twice`)
  assert.ok(accepted > 20)
  assert.deepEqual([lost, twice], [0, 0])
}

const migrationsIn = (file: string): string[] => {
  const list = execFileSync('dpkg-deb', ['--contents', file], {
    encoding: 'utf8',
    maxBuffer: 16 * 1024 * 1024,
  })
  return [...list.matchAll(/\/migrations\/(\w+)\.sql$/gm)].map(([, name = '']) => name)
}

/** Files that the package's removal leaves, other than logs and caches of the system. */
const leftovers =
  'find /etc /usr /lib /var /run -xdev -name "*postern*" -not -path "/var/lib/dpkg/*" -not -path "/var/log/*" -not -path "/var/cache/*" -not -path "/run/systemd/*" | sort'

function checkRemoval(machine: Machine): void {
  machine.type('apt-get remove --yes postern')
  const running = '-user postern -o -user postern-signer -o -user postern-migrate'
  assert.equal(machine.type(`find /proc -maxdepth 1 \\( ${running} \\)`).trim(), '')
  assert.match(machine.type('ls /etc/postern'), /master-keys/)
  const purged = machine.type('apt-get purge --yes postern')
  assert.match(purged, /The database `postern` and its logins, the\s+users/)
  // Postfix's original configuration, which setup has kept.
  assert.deepEqual(machine.type(leftovers).trim().split('\n').filter(Boolean), [
    '/etc/postfix/main.cf.before-postern',
    '/etc/postfix/master.cf.before-postern',
  ])
  say('removed and purged')
}

/** Checks the two logins, the separate signer user, and that Postern's user cannot change the checkpoint file. */
function checkAudit(machine: Machine): void {
  const postern = 'runuser -u postern -- postern --settings /etc/postern/postern.env'
  const results = JSON.parse(machine.type(`${postern} doctor --json || true`)) as {
    check: string
    level: string
  }[]
  const wanted = ['database.login', 'database.roles', 'audit.checkpoints', 'audit.file', 'audit.signer']
  const found = results.filter(({ check }) => wanted.includes(check))
  assert.deepEqual(
    found.filter(({ level }) => level !== 'ok'),
    [],
  )
  assert.ok(found.length >= wanted.length, JSON.stringify(found))
  assert.match(machine.type(`${postern} audit verify`), /^The audit log is intact/)
  for (const attempt of ['cat /etc/postern/signer-key', 'tee -a /var/lib/postern-signer/checkpoints'])
    assert.throws(() => machine.type(`runuser -u postern -- ${attempt} < /dev/null`), attempt)
  for (const change of [
    'update control.audit set reason = null',
    'delete from control.audit',
    'truncate control.audit',
  ])
    assert.throws(
      () =>
        machine.type(
          `runuser -u postern -- env PGOPTIONS='-c role=postern_admin' psql postern -c '${change}'`,
        ),
      change,
    )
}

const journalOf = (machine: Machine): string =>
  machine.type('journalctl --no-pager --lines=80; tail -n 40 /var/log/mail.log 2>/dev/null || true')

/** The package of this state, and one of a later version with a further migration; or a release and this state. */
async function makePackages(folder: string, release: string | undefined): Promise<[string, string]> {
  const built = path.join(root, 'server/dist')
  const bill = '{}\n'
  if (release !== undefined) {
    const version = await currentVersion()
    assert.ok(!path.basename(release).startsWith(`postern_${version}_`), `${release} has the same version`)
    const here = await debianPackage({ root, built, folder, version, time: 0, bill }, 'amd64')
    return [path.resolve(release), here]
  }
  const first = await debianPackage({ root, built, folder, version: '0.1.0', time: 0, bill }, 'amd64')
  const later = path.join(folder, 'later')
  cpSync(built, later, { recursive: true })
  const manifest = path.join(later, 'package.json')
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"version": "0.1.0"', '"version": "0.1.1"'))
  writeFileSync(
    path.join(later, 'migrations/000004_for_the_test.sql'),
    '-- A column for the test of an upgrade.\n\nalter table control.projects add column for_the_test text;\n',
  )
  const second = await debianPackage({ root, built: later, folder, version: '0.1.1', time: 0, bill }, 'amd64')
  return [first, second]
}

const { values: options, positionals: packages } = parseArgs({
  allowPositionals: true,
  options: { from: { type: 'string' } },
})
if (packages.length === 0) {
  makeImage()
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' })
  const folder = mkdtempSync(path.join(tmpdir(), 'postern-packages-'))
  try {
    const files = await makePackages(folder, options.from)
    // The child process gets a new network namespace and shares all others with this process.
    const args = ['--net', process.execPath, import.meta.filename, ...files]
    process.exitCode = spawnSync('unshare', args, { stdio: 'inherit' }).status ?? 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
} else {
  const [first = '', second = ''] = packages
  await prove(first, second)
  // The DNS server and the mail server would keep the process running.
  process.exit()
}
