import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Image } from './image.ts'

/** The parts of a compose.yaml service that can be run without an engine. */
export interface Service {
  networks?: string[] | Record<string, { aliases?: string[] }>
  user?: string
  command?: string[]
  environment?: Record<string, string>
  secrets?: string[]
  volumes?: string[]
  tmpfs?: string[]
  hostname?: string
  cap_add?: string[]
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test: string[] }
}

export interface Container {
  /** Runs a command with the image's user and environment, and returns its output. */
  exec(...command: string[]): string
  /** The exit code of the container. */
  ended: Promise<number>
  stop(): Promise<number>
}

/** The locations of the service's files and volumes. */
interface Place {
  name: string
  /** The folder that contains compose.yaml. */
  folder: string
  volumes: string
}

/**
 * Starts a service with systemd-nspawn and the restrictions in compose.yaml: a read-only image, only the listed
 * capabilities, and no new privileges. The service shares this process's network.
 */
export async function startService(service: Service, image: Image, place: Place): Promise<Container> {
  const user = (service.user ?? image.user).split(':')[0] ?? 'root'
  const env = { ...image.env, ...service.environment }
  const entry = service.command ? [...image.command.slice(0, 1), ...service.command] : image.command
  const args = [
    ...[
      '--quiet',
      '--register=no',
      '--keep-unit',
      '--console=pipe',
      '--resolv-conf=off',
      '--kill-signal=SIGTERM',
    ],
    ...['--read-only', '--no-new-privileges=yes', `--drop-capability=${dropped(service.cap_add ?? [])}`],
    `--directory=${image.files}`,
    `--machine=${place.name}`,
    `--user=${nameOf(image, user)}`,
    ...(service.hostname ? [`--hostname=${filledIn(service.hostname)}`] : []),
    ...(service.tmpfs ?? []).map((folder) => `--tmpfs=${folder}:mode=1777`),
    ...(service.secrets ?? []).map(
      (name) => `--bind-ro=${place.folder}/secrets/${name}:/run/secrets/${name}`,
    ),
    ...(service.volumes ?? []).map((volume) => bindOf(volume, image, place)),
    ...Object.entries(env).map(([name, value]) => `--setenv=${name}=${filledIn(value)}`),
  ]
  const child = spawn('systemd-nspawn', [...args, ...entry], { stdio: ['ignore', 'inherit', 'inherit'] })
  process.once('exit', () => child.kill('SIGKILL'))
  const ended = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? 1)))
  const first = () =>
    Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')[0])
  return {
    ended,
    exec: (...command) =>
      execFileSync(
        'nsenter',
        [`--target=${first()}`, '--all', '--', 'setpriv', ...identity(image, user), ...command],
        {
          encoding: 'utf8',
          env: { PATH: '/usr/local/bin:/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/bin', ...values(env) },
          stdio: ['ignore', 'pipe', 'pipe'],
        },
      ),
    stop() {
      process.kill(first(), 'SIGTERM')
      return ended
    },
  }
}

/** The default capabilities of systemd-nspawn(1), which are dropped unless compose.yaml adds them. */
const usual =
  `AUDIT_CONTROL AUDIT_WRITE CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_OWNER KILL LEASE LINUX_IMMUTABLE
  MKNOD NET_BIND_SERVICE NET_BROADCAST NET_RAW SETFCAP SETGID SETPCAP SETUID SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_NICE
  SYS_PTRACE SYS_RESOURCE SYS_TTY_CONFIG`.split(/\s+/)

const dropped = (kept: string[]): string =>
  usual
    .filter((name) => !kept.includes(name))
    .map((name) => `CAP_${name}`)
    .join(',')

/** Replaces `${NAME:-default}` with the default. */
const filledIn = (text: string): string => text.replace(/\$\{\w+:-([^}]*)\}/g, '$1')

const values = (env: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [name, filledIn(value)]))

const accountOf = ({ files }: Image, user: string): string[] => {
  const lines = readFileSync(path.join(files, 'etc/passwd'), 'utf8').split('\n')
  const account = lines.map((line) => line.split(':')).find(([name, , id]) => name === user || id === user)
  if (!account) throw new Error(`The image has no user ${user}`)
  return account
}

const nameOf = (image: Image, user: string): string => accountOf(image, user)[0] ?? ''

const identity = (image: Image, user: string): string[] => {
  const [, , uid, gid] = accountOf(image, user)
  return [`--reuid=${uid}`, `--regid=${gid}`, '--init-groups', '--']
}

/** A new volume is initialised from the image; project files are bind-mounted. */
function bindOf(volume: string, { files }: Image, { folder, volumes }: Place): string {
  const [from = '', to = '', mode] = volume.split(':')
  if (from.startsWith('.')) return `--bind${mode === 'ro' ? '-ro' : ''}=${path.resolve(folder, from)}:${to}`
  const kept = path.join(volumes, from)
  if (!existsSync(kept)) {
    mkdirSync(path.dirname(kept), { recursive: true })
    // Preserves the owners, as an engine does.
    execFileSync('cp', ['--archive', path.join(files, to), kept])
  }
  return `--bind${mode === 'ro' ? '-ro' : ''}=${kept}:${to}`
}

export async function healthy(container: Container, test: string[], what: string): Promise<void> {
  for (let attempt = 0; attempt < 150; attempt++) {
    try {
      container.exec(...test)
      return
    } catch {
      await sleep(400)
    }
  }
  throw new Error(`${what} did not become healthy`)
}

/** A replacement for the PostgreSQL image: creates a cluster as its documentation describes, with Debian's programs. */
export function postgresImage(files: string): Image {
  const script = `#!/bin/sh
set -eu
export PATH=/usr/lib/postgresql/15/bin:$PATH
initdb --pgdata="$PGDATA" --username=postgres --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust $POSTGRES_INITDB_ARGS
echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
pg_ctl --pgdata="$PGDATA" --options="-c listen_addresses=" --wait start
for file in /docker-entrypoint-initdb.d/*.sh; do "$file"; done
pg_ctl --pgdata="$PGDATA" --mode=fast --wait stop
exec postgres -D "$PGDATA" -c listen_addresses='*'
`
  const data = path.join(files, 'var/lib/postgresql/data')
  mkdirSync(data)
  mkdirSync(path.join(files, 'docker-entrypoint-initdb.d'))
  // The target of a file bind mount must exist, because the image is read-only.
  writeFileSync(path.join(files, 'docker-entrypoint-initdb.d/login.sh'), '')
  writeFileSync(path.join(files, 'usr/local/bin/docker-entrypoint.sh'), script, { mode: 0o755 })
  const image = {
    ...{ files, user: 'root', healthcheck: [], command: ['docker-entrypoint.sh'] },
    env: { PGDATA: '/var/lib/postgresql/data' },
  }
  execFileSync('chown', [`${accountOf(image, 'postgres')[2]}:${accountOf(image, 'postgres')[3]}`, data])
  return image
}
