import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { blocksOf } from './docs/blocks.ts'
import { openWorld, type World } from './install/internet.ts'
import { bootMachine, type Machine, makeImage } from './install/machine.ts'

/**
 * `npm run prove:install`: runs the exact commands in docs/guide/install.md on a clean Debian 12 system. It requires
 * root, mmdebstrap, systemd-container and knot. It also performs the operator's steps: it publishes the DNS records and
 * replaces `pk_live_…` with the printed key.
 */
const root = path.resolve(import.meta.dirname, '..')
const most = 10

const say = (line: string) => process.stdout.write(`${line}\n`)

/** All lines in the blocks marked to be run. */
const commandsOf = (page: string): string[] =>
  blocksOf(page)
    .filter(({ mark }) => mark?.isRun)
    .flatMap(({ text }) => text.trim().split('\n'))

async function prove(tarball: string): Promise<void> {
  const commands = commandsOf('docs/guide/install.md')
  assert.ok(commands.length > 0 && commands.length <= most, `${commands.length} commands`)
  const world = await openWorld()
  const machine = await bootMachine(tarball)
  try {
    await follow(machine, world, commands)
    await checkInstallation(machine)
  } catch (error) {
    say(journalOf(machine))
    throw error
  } finally {
    await machine.shutDown()
  }
  say(`First message sent with ${commands.length} commands.`)
}

async function follow(machine: Machine, world: World, commands: string[]): Promise<void> {
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
    if (records) await world.openMailServer()
    if (isLast) await delivered(machine, world, JSON.parse(printed).id, key)
  }
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
async function checkInstallation(machine: Machine): Promise<void> {
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
  machine.type(
    'postern init --public-url https://mail.example.org --postfix /etc/postfix | grep -q ^wrote && exit 1 || true',
  )
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

if (process.argv[2] === undefined) {
  makeImage()
  execFileSync('npm', ['run', 'build'], { cwd: root, stdio: 'inherit' })
  const packed = execFileSync('npm', ['pack', './server/dist', '--silent'], { cwd: root, encoding: 'utf8' })
  const tarball = path.join(root, packed.trim())
  // The child process gets a new network namespace and shares all others with this process.
  const args = ['--net', process.execPath, import.meta.filename, tarball]
  process.exitCode = spawnSync('unshare', args, { stdio: 'inherit' }).status ?? 1
} else {
  await prove(process.argv[2])
  // The DNS server and the mail server would keep the process running.
  process.exit()
}
