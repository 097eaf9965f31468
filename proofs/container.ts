import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse } from 'yaml'
import { buildImage, type Image } from './container/image.ts'
import { type Container, healthy, postgresImage, type Service, startService } from './container/service.ts'
import { openWorld } from './install/internet.ts'
import { extractDebian, makeImage } from './install/machine.ts'

/**
 * `npm run prove:container`: builds the images of deploy/ from their Dockerfiles, starts the services of compose.yaml
 * in dependency order, with its restrictions, and sends a message through them. It needs root and systemd-nspawn, but
 * no container engine.
 *
 * Differences from an engine: every base image is Debian 12; the PostgreSQL image is Debian's PostgreSQL with the
 * documented entry point; all services share one network without external access, so Postfix listens on its own address
 * instead of on all addresses.
 */
const root = path.resolve(import.meta.dirname, '..')
const addresses: Record<string, string> = {
  postgres: '172.30.25.2',
  postfix: '172.30.25.3',
  postern: '172.30.25.4',
}

type Images = Record<string, Image>

const tracked = (folder: string): string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: folder,
    encoding: 'utf8',
  })
    .trim()
    .split('\n')

/** Supports patterns without exceptions. A pattern matches a name and everything below it. */
function contextOf(ignoreFile: string): { folder: string; files: string[] } {
  const patterns = readFileSync(ignoreFile, 'utf8').trim().split('\n')
  const isIgnored = (file: string) =>
    patterns.some((pattern) => path.matchesGlob(file, pattern) || path.matchesGlob(file, `${pattern}/**`))
  return { folder: root, files: tracked(root).filter((file) => !isIgnored(file)) }
}

function buildImages(): Images {
  const postern = buildImage(
    path.join(root, 'deploy/Dockerfile'),
    contextOf(path.join(root, 'deploy/Dockerfile.dockerignore')),
  )
  const folder = path.join(root, 'deploy/postfix')
  const postfix = buildImage(path.join(folder, 'Dockerfile'), { folder, files: tracked(folder) })
  const files = mkdtempSync(path.join(tmpdir(), 'postern-image-'))
  extractDebian(files)
  return { postern, migrate: postern, signer: postern, postfix, postgres: postgresImage(files) }
}

/** Sets up host names and the network, as an engine would. */
function connect(images: Images, services: Record<string, Service>): void {
  const hosts = Object.entries(addresses).map(([name, address]) =>
    [address, name, ...aliasesOf(services[name])].join(' '),
  )
  for (const { files } of Object.values(images)) {
    writeFileSync(path.join(files, 'etc/hosts'), ['127.0.0.1 localhost', ...hosts, ''].join('\n'))
    rmSync(path.join(files, 'etc/resolv.conf'), { force: true })
    writeFileSync(path.join(files, 'etc/resolv.conf'), 'nameserver 127.0.0.1\n')
  }
  for (const address of Object.values(addresses))
    execFileSync('ip', ['address', 'add', `${address}/24`, 'dev', 'lo'])
  const own = [
    '-c',
    `${images['postfix']?.files}/etc/postfix`,
    '-e',
    `inet_interfaces=${addresses['postfix']}`,
  ]
  execFileSync('/usr/sbin/postconf', own)
}

const aliasesOf = ({ networks = {} }: Service = {}): string[] =>
  Array.isArray(networks) ? [] : Object.values(networks).flatMap(({ aliases = [] }) => aliases)

async function startAll(services: Record<string, Service>, images: Images, folder: string) {
  const volumes = mkdtempSync(path.join(tmpdir(), 'postern-volumes-'))
  const started = new Map<string, Container>()
  const start = async (name: string): Promise<Container> => {
    const known = started.get(name)
    if (known) return known
    const [service, image] = [services[name], images[name]]
    if (!service || !image) throw new Error(`There is no service ${name}`)
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      const container = await start(other)
      if (condition === 'service_completed_successfully') assert.equal(await container.ended, 0, other)
      if (condition === 'service_healthy')
        await healthy(container, services[other]?.healthcheck?.test.slice(1) ?? [], other)
    }
    process.stdout.write(`── ${name}\n`)
    const container = await startService(service, image, { name, folder, volumes })
    started.set(name, container)
    return container
  }
  for (const name of Object.keys(services)) await start(name)
  return started
}

async function prove(images: Images): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'postern-compose-'))
  cpSync(path.join(root, 'deploy'), folder, { recursive: true })
  rmSync(path.join(folder, 'secrets'), { recursive: true, force: true })
  execFileSync(path.join(folder, 'make-secrets.sh'), { stdio: 'inherit' })
  const world = await openWorld()
  const { services } = parse(readFileSync(path.join(folder, 'compose.yaml'), 'utf8'))
  connect(images, services)
  const started = await startAll(services, images, folder)
  const postern = started.get('postern') ?? assert.fail()
  await healthy(postern, images['postern']?.healthcheck ?? [], 'postern')
  await healthy(started.get('postfix') ?? assert.fail(), images['postfix']?.healthcheck ?? [], 'postfix')

  // Equivalent to `docker compose exec postern …`.
  assert.match(postern.exec('id'), /^uid=10001\(postern\) gid=10001/)
  assert.throws(() => postern.exec('touch', '/opt/postern/here'), /Read-only file system/)
  assert.throws(() => postern.exec('npm', '--version'))
  postern.exec('postern', 'admin', 'create', '--email', 'you@example.net')
  const email = ['--email', 'you@example.net', '--domain', 'shop.example.org']
  const printed = postern.exec('postern', 'project', 'create', ...email)
  await world.publish(printed.match(/^ {2}\S+ {2}(TXT|CNAME|MX) {2}.+$/gm) ?? [])
  await world.openMailServer()
  await sendAndWait(/\bpk_live_\w+/.exec(printed)?.[0] ?? '')
  assert.deepEqual(
    world.received.map(({ to }) => to),
    [['you@example.net']],
  )
  // Only the signer can read the key; its checkpoints can be read but not changed.
  const signed = postern.exec('postern', 'audit', 'checkpoint', '--json')
  assert.ok(JSON.parse(signed).made > 0, signed)
  assert.match(postern.exec('postern', 'audit', 'verify'), /^The audit log is intact/)
  assert.throws(() => postern.exec('cat', '/run/secrets/signer-key'))
  assert.throws(() => postern.exec('touch', '/var/lib/postern-signer/checkpoints'))
  for (const name of ['postern', 'signer', 'postfix', 'postgres'])
    process.stdout.write(`${name} stopped with ${await started.get(name)?.stop()}\n`)
}

async function sendAndWait(key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const url = 'http://127.0.0.1:8080/v1/messages'
  const mail = {
    from: 'hello@shop.example.org',
    to: ['you@example.net'],
    subject: 'Hello',
    text: 'It works.',
  }
  const until = async (what: string, look: () => Promise<string | false>): Promise<string> => {
    for (let attempt = 0; attempt < 180; attempt++) {
      const seen = await look()
      if (seen !== false) return seen
      await sleep(1000)
    }
    throw new Error(`Timed out waiting: ${what}`)
  }
  const id = await until('the message is accepted', async () => {
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(mail) })
    return response.status === 202 && ((await response.json()) as { id: string }).id
  })
  await until('the message is delivered', async () => {
    const { status } = (await (await fetch(`${url}/${id}`, { headers })).json()) as { status: string }
    return status === 'delivered' && status
  })
}

if (process.argv[2] === undefined) {
  makeImage()
  const images = buildImages()
  // The child process gets a new network namespace and shares all others with this process.
  const args = ['--net', process.execPath, import.meta.filename, JSON.stringify(images)]
  process.exitCode = spawnSync('unshare', args, { stdio: 'inherit' }).status ?? 1
  for (const { files } of new Set(Object.values(images))) rmSync(files, { recursive: true, force: true })
} else {
  await prove(JSON.parse(process.argv[2]))
  process.stdout.write('The containers delivered a message.\n')
  process.exit()
}
