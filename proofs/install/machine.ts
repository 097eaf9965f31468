import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

/** A clean Debian 12 system with PostgreSQL and Postfix, and with these files in /root, booted with its own systemd (systemd-nspawn) in this process's network namespace. */
export interface Machine {
  home: string
  /** Runs a command as root and returns its output. The exit code must be 0. */
  type(command: string): string
  /** The same without blocking this process. */
  run(command: string): Promise<string>
  shutDown(): Promise<void>
}

const root = path.resolve(import.meta.dirname, '../..')
const image = path.join(root, 'node_modules/.cache/debian-12.tar')
const packages = [
  'systemd',
  'systemd-sysv',
  'dbus',
  'ca-certificates',
  'postgresql',
  'postfix',
  'curl',
  'libstdc++6',
]

/**
 * Creates a Debian 12 root file system with these packages, as a tar file. This takes a minute or two and needs network
 * access.
 */
export function makeDebian(file: string, packages: readonly string[]): void {
  if (existsSync(file)) return
  mkdirSync(path.dirname(file), { recursive: true })
  const options = ['--format=tar', '--variant=minbase', `--include=${packages.join(',')}`]
  execFileSync('mmdebstrap', [...options, 'bookworm', `${file}.part`], { stdio: 'inherit' })
  renameSync(`${file}.part`, file)
}

/** An image with PostgreSQL and Postfix in Debian's default configuration. Created once. */
export const makeImage = (): void => makeDebian(image, packages)

export function extractDebian(folder: string): void {
  execFileSync('tar', ['--extract', '--file', image, '--directory', folder])
}

export async function bootMachine(...files: string[]): Promise<Machine> {
  const home = mkdtempSync(path.join(tmpdir(), 'postern-machine-'))
  extractDebian(home)
  writeFileSync(path.join(home, 'etc/resolv.conf'), 'nameserver 127.0.0.1\n')
  writeFileSync(path.join(home, 'etc/hostname'), 'mail\n')
  for (const file of files) cpSync(file, path.join(home, 'root', path.basename(file)))
  const bootOptions = ['--directory', home, '--boot', '--register=no', '--keep-unit', '--resolv-conf=off']
  const nspawn = spawn('systemd-nspawn', ['--quiet', ...bootOptions, '--console=pipe'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  process.once('exit', () => nspawn.kill('SIGKILL'))
  const pid = await firstProcessOf(nspawn)
  const enter = ['--target', String(pid), '--all', '--']
  const options = {
    encoding: 'utf8' as const,
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/root',
      LANG: 'C.UTF-8',
    },
    timeout: 180_000,
  }
  const inside = (...command: string[]) => execFileSync('nsenter', [...enter, ...command], options)
  await booted(inside)
  return {
    home,
    type: (command) => inside('/bin/bash', '-c', `cd\n${command}`),
    run: async (command) =>
      (await promisify(execFile)('nsenter', [...enter, '/bin/bash', '-c', `cd\n${command}`], options)).stdout,
    async shutDown() {
      const gone = new Promise((resolve) => nspawn.once('exit', resolve))
      // systemd in a container: SIGRTMIN+3 is an orderly halt.
      execFileSync('kill', ['-s', 'RTMIN+3', String(pid)])
      await gone
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** Copies Node.js to /usr/local, like the nodejs.org archive. */
export function installNode(home: string): void {
  const local = path.join(home, 'usr/local')
  cpSync(process.execPath, path.join(local, 'bin/node'))
  const npm = path.resolve(realpathSync(execFileSync('which', ['npm'], { encoding: 'utf8' }).trim()), '../..')
  cpSync(npm, path.join(local, 'lib/node_modules/npm'), { recursive: true })
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', path.join(local, 'bin/npm'))
}

async function firstProcessOf(nspawn: ChildProcess): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const children = readFileSync(`/proc/${nspawn.pid}/task/${nspawn.pid}/children`, 'utf8').trim().split(' ')
    const pid = children.map(Number).find((child) => child > 0 && isSystemd(child))
    if (pid !== undefined) return pid
    await sleep(100)
  }
  throw new Error('systemd did not start')
}

function isSystemd(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'systemd'
  } catch {
    return false
  }
}

async function booted(inside: (...command: string[]) => string): Promise<void> {
  for (let attempt = 0; attempt < 120; attempt++) {
    try {
      inside('systemctl', 'is-active', 'multi-user.target')
      return
    } catch {
      await sleep(500)
    }
  }
  throw new Error('The machine did not boot')
}
