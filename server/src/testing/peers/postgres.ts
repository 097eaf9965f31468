import { type ExecFileException, execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chown, mkdir, mkdtemp, readdir, readFile, rm, statfs } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { newPartLog } from '../harness/part-logs.ts'
import { steadyPort } from './steady-port.ts'

/**
 * A private PostgreSQL cluster from the installed binaries, on a free loopback port.
 *
 * PostgreSQL refuses to run as root; root starts it as the user `postgres`, which Debian's package creates.
 */
export interface Cluster {
  /** Superuser URL of the database `postgres`. */
  url: string
  /** Sends SIGKILL, which simulates a power failure. Resolves when all processes have exited. */
  kill(): Promise<void>
  /** Restarts the cluster at the same address. Resolves when it accepts connections; fails if it is running. */
  start(): Promise<void>
  /** True if its processes are running, even if it does not accept connections yet. */
  isRunning(): Promise<boolean>
  stop(): Promise<void>
}

export interface ClusterPlaces {
  /** A directory for durable data, as in production. */
  directory: string
  /** An empty directory for the write-ahead log, if it should be elsewhere. */
  walDirectory?: string | undefined
}

const run = promisify(execFile)

const settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '300',
  shared_buffers: '256MB',
}

// Data that only this run uses does not need durability.
const fleeting = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' }

/** Stores data in memory if enough is free, which makes creating a database twenty times faster. */
async function fleetingPlace(): Promise<string> {
  const memory = '/dev/shm'
  const { bavail, bsize } = await statfs(memory).catch(() => ({ bavail: 0, bsize: 0 }))
  return bavail * bsize >= 4 * 2 ** 30 ? memory : tmpdir()
}

/** Without a directory, the data is deleted when the cluster stops. */
export async function startCluster({
  directory,
  walDirectory,
  besides = {},
}: Partial<ClusterPlaces> & { besides?: Record<string, string> } = {}): Promise<Cluster> {
  const bin = await findBinaries()
  const home = directory ?? (await mkdtemp(path.join(await fleetingPlace(), 'postern-postgres-')))
  await mkdir(home, { recursive: true })
  const data = path.join(home, 'data')
  const isRoot = userInfo().uid === 0
  for (const place of [home, walDirectory]) if (place) await giveToPostgres(place)

  const pg = async (program: string, ...args: string[]): Promise<void> => {
    const command = [path.join(bin, program), ...args]
    const [file = '', ...rest] = isRoot ? ['runuser', '-u', 'postgres', '--', ...command] : command
    try {
      await run(file, rest, { cwd: home })
    } catch (error) {
      const { stderr, message } = error as ExecFileException & { stderr?: string }
      throw new Error(`PostgreSQL failed (${program}): ${stderr || message}`)
    }
  }
  const pid = () => postmasterPid(data)
  const stop = async () => {
    await pg('pg_ctl', '-D', data, '-m', directory ? 'fast' : 'immediate', 'stop')
    newPartLog('postgresql').copyFrom(path.join(home, 'log'))
    if (!directory) await rm(home, { recursive: true, force: true })
  }

  if (!existsSync(path.join(data, 'PG_VERSION'))) {
    const elsewhere = walDirectory ? ['--waldir', walDirectory] : []
    const how = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', ...elsewhere]
    await pg('initdb', '-D', data, ...how)
  }
  // A cluster left behind by a killed process.
  if (directory && existsSync(path.join(data, 'postmaster.pid'))) await stop().catch(() => {})
  const port = await steadyPort()
  const chosen = { ...settings, ...(directory ? {} : fleeting), ...besides, port }
  const options = Object.entries(chosen).map(([name, value]) => `-c ${name}='${value}'`)
  const start = () =>
    pg('pg_ctl', '-D', data, '-l', path.join(home, 'log'), '-w', '-o', options.join(' '), 'start')
  await start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    kill: () => killPostgres(data),
    start,
    isRunning: async () => isAlive(await pid()),
    stop,
  }
}

/** Kills the cluster with this data directory. Resolves when all its processes have exited. */
export async function killPostgres(data: string): Promise<void> {
  const [postmaster = 0, ...children] = await familyOf(data)
  process.kill(postmaster, 'SIGKILL')
  // A session exits when it next checks for interrupts. Until then the data is in use.
  while ((await Promise.all([postmaster, ...children].map(isAlive))).includes(true)) await sleep(5)
  // If the dead postmaster is never reaped, the next one would consider it running.
  await rm(path.join(data, 'postmaster.pid'), { force: true })
}

/** The postmaster with this data directory and all its child processes. */
export async function familyOf(data: string): Promise<number[]> {
  const postmaster = await postmasterPid(data)
  return [postmaster, ...(await childrenOf(postmaster))]
}

/** The first line of postmaster.pid, which remains after a kill. */
async function postmasterPid(data: string): Promise<number> {
  return Number.parseInt(await readFile(path.join(data, 'postmaster.pid'), 'utf8').catch(() => '0'), 10)
}

async function childrenOf(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return children.split(' ').filter(Boolean).map(Number)
}

/** False for a zombie process. */
export async function isAlive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return stat !== '' && !/\) [ZX] /.test(stat)
}

export async function findBinaries(): Promise<string> {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? await readdir(debian) : []
  const candidates = versions
    .map(Number)
    .filter((version) => version >= 15)
    .sort((a, b) => b - a)
    .map((version) => path.join(debian, String(version), 'bin'))
  const onPath = (process.env['PATH'] ?? '').split(path.delimiter)
  const found = [...candidates, ...onPath].find((directory) => existsSync(path.join(directory, 'initdb')))
  if (!found) {
    throw new Error('PostgreSQL 15 or newer is not installed. On Debian: apt-get install postgresql')
  }
  return found
}

/**
 * The user that PostgreSQL runs as if the tests run as root; otherwise undefined. PostgreSQL refuses to run as root.
 */
export async function postgresUser(): Promise<{ uid: number; gid: number } | undefined> {
  if (userInfo().uid !== 0) return undefined
  const id = async (which: string): Promise<number> => Number((await run('id', [which, 'postgres'])).stdout)
  return { uid: await id('-u'), gid: await id('-g') }
}

export async function giveToPostgres(directory: string): Promise<void> {
  const user = await postgresUser()
  if (user) await chown(directory, user.uid, user.gid)
}
