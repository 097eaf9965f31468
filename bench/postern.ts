import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { type Cluster, type ClusterPlaces, startCluster } from '../server/src/testing/peers/postgres.ts'

/**
 * An installation to measure: a private PostgreSQL with `fsync` on, as in production, and `postern api` as a separate
 * process. The application's login is neither superuser nor owner.
 */
export interface Postern {
  /** The URL of the API. */
  url: string
  /** The URL for the application's login. */
  databaseUrl: string
  /** The URL for the superuser. */
  ownerUrl: string
  /** A connection for setup and counting. */
  superuser: pg.Client
  postgres: Pick<Cluster, 'kill' | 'start' | 'isRunning'>
  postgresLog: string
  /** A folder for the benchmark's files, removed at the end. */
  directory: string
  api: Part
  /** The process ids of the API and of PostgreSQL's postmaster (0 if there are several). */
  pids: { api: number; postgres: number }
  /** A new access token for an administrator, valid for ten minutes. */
  token(): Promise<string>
  /** Runs a command, optionally with other settings, and returns its exit status and output. */
  call(args: readonly string[], options?: Pick<PartOptions, 'environment' | 'program'>): Promise<Called>
  /** Starts another process. Resolves when it is ready. */
  start(part: PartName | 'all', options?: PartOptions): Promise<Part>
  stop(): Promise<void>
}

export interface Called {
  status: number
  stdout: string
  stderr: string
}

export type PartName = 'api' | 'worker' | 'intake'

export interface Part {
  pid: number
  /** The log record that reports readiness. */
  ready: Record<string, unknown>
  /** Sends SIGTERM. */
  stop(): Promise<void>
  /** Sends SIGKILL. */
  kill(): Promise<void>
}

export interface PartOptions {
  /** Settings in addition to the required ones. */
  environment?: Record<string, string>
  /** Node.js options, such as --cpu-prof. */
  nodeOptions?: string[]
  /** Another build of Postern. */
  program?: string | undefined
}

/** Options for the API process. The environment settings apply to all processes. */
export interface PosternOptions extends PartOptions {
  /** Replaces the single PostgreSQL server; the replacement's data is deleted when it stops. */
  cluster?: ((home: string) => Promise<Cluster>) | undefined
  /** PostgreSQL's data folder. It is reused, and kept at the end. */
  data?: string | undefined
  /** PostgreSQL settings, including those that require a restart. */
  settings?: Record<string, string>
  /** PostgreSQL's WAL folder, if it is outside the data folder. */
  wal?: string | undefined
}

// The built program, if the test run has built it (scripts/run-tests.ts).
const usualProgram =
  process.env['POSTERN_TEST_PROGRAM'] ?? path.resolve(import.meta.dirname, '../server/src/bin/postern.js')
const appUser = 'postern_app'
const email = 'bench@example.com'
const exec = promisify(execFile)
/** The timeout for a command, long enough for a busy machine. */
const callMs = 600_000

export async function startPostern(options: PosternOptions = {}): Promise<Postern> {
  const home = await mkdtemp(path.join(tmpdir(), 'postern-bench-'))
  const postgresHome = options.data ?? (await mkdtemp(path.join(tmpdir(), 'postern-bench-postgres-')))
  const fleeting = options.data === undefined ? [home, postgresHome] : [home]
  const undo = fleeting.map((directory) => () => rm(directory, { recursive: true, force: true }))
  undo.push(() => keepLogs(home, postgresHome))
  const undoAll = async (): Promise<void> => {
    for (let step = undo.pop(); step; step = undo.pop()) await step()
  }
  // Called both on a signal and when the benchmark fails.
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopped ??= undoAll()
    return stopped
  }
  stopOnSignal(stop)
  try {
    // With a directory, fsync and synchronous_commit are on, as in production.
    const places = { directory: postgresHome, walDirectory: options.wal }
    if (options.settings) await setUp(places, options.settings)
    const cluster = await (options.cluster?.(postgresHome) ?? startCluster(places))
    undo.push(async () => {
      if (await cluster.isRunning()) await cluster.stop()
    })
    let isNew = true
    await onDatabase(cluster.url, async (client) => {
      const { rowCount } = await client.query(`select from pg_database where datname = 'postern'`)
      isNew = rowCount === 0
      if (!isNew) return
      const password = new URL(cluster.url).password
      await client.query(`create role ${appUser} login noinherit ${password && `password '${password}'`}`)
      await client.query('create database postern')
    })
    const ownerUrl = cluster.url.replace(/postgres$/, 'postern')
    const databaseUrl = ownerUrl.replace(/(?<=:\/\/)postgres\b/, appUser)
    const secrets = await secretsOf(options.data)
    // Halves the start-up time.
    const compiled = {
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? path.join(home, 'compiled'),
    }
    const env = { ...environment(databaseUrl, ownerUrl), ...compiled, ...secrets, ...options.environment }
    const { program = usualProgram } = options
    const postern = async (...args: string[]): Promise<string> =>
      (await exec(process.execPath, [program, ...args], { env, timeout: callMs })).stdout.trim()
    await postern('migrate')
    if (isNew) await postern('admin', 'create', '--email', email)

    const superuser = new pg.Client({ connectionString: ownerUrl })
    await superuser.connect()
    undo.push(() => superuser.end())
    const start = async (name: PartName | 'all', own: PartOptions = {}): Promise<Part> => {
      const command = [...(own.nodeOptions ?? []), own.program ?? program, name]
      const part = await startPart(home, name, { ...env, ...own.environment }, command)
      undo.push(() => part.stop())
      return part
    }
    const api = await start('api', options)
    return {
      url: `http://127.0.0.1:${portOf(api)}`,
      databaseUrl,
      ownerUrl,
      superuser,
      postgres: cluster,
      postgresLog: path.join(postgresHome, 'log'),
      directory: home,
      api,
      pids: { api: api.pid, postgres: options.cluster ? 0 : await postmasterPid(postgresHome) },
      token: () => postern('token', '--email', email),
      call: (args, own = {}) => call([own.program ?? program, ...args], { ...env, ...own.environment }),
      start,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Keeps the logs in case the run fails. proofs/short.ts sets the folder, and removes it if the run passes. */
async function keepLogs(home: string, postgresHome: string): Promise<void> {
  const folder = process.env['POSTERN_TEST_LOGS']
  if (!folder) return
  await mkdir(folder, { recursive: true })
  await cp(home, folder, { recursive: true, filter: (file) => path.basename(file) !== 'compiled' })
  const log = path.join(postgresHome, 'log')
  if (existsSync(log)) await cp(log, path.join(folder, 'postgresql.log'))
}

const call = (args: readonly string[], env: Record<string, string>): Promise<Called> =>
  new Promise((resolve) => {
    execFile(process.execPath, args, { env, timeout: callMs }, (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    )
  })

const stops: (() => Promise<void>)[] = []

/** A benchmark can have two installations. The process exits when both have stopped. */
function stopOnSignal(stop: () => Promise<void>): void {
  if (stops.push(stop) > 1) return
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(
      signal,
      () => void Promise.allSettled(stops.map((stopOne) => stopOne())).finally(() => process.exit(1)),
    )
  }
}

async function setUp(places: ClusterPlaces, settings: Record<string, string>): Promise<void> {
  const cluster = await startCluster(places)
  try {
    await onDatabase(cluster.url, async (client) => {
      for (const [name, value] of Object.entries(settings)) {
        await client.query(`alter system set ${name} = '${value}'`)
      }
    })
  } finally {
    await cluster.stop()
  }
}

const environment = (databaseUrl: string, ownerUrl: string): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  POSTERN_DATABASE_URL: databaseUrl,
  POSTERN_DATABASE_OWNER_URL: ownerUrl,
  POSTERN_PUBLIC_URL: 'http://localhost:8080',
  POSTERN_HTTP_PORT: '0',
  // High enough that the measurement does not reach them.
  POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: '1000000000',
  POSTERN_REQUESTS_PER_MINUTE_PER_USER: '1000000000',
  POSTERN_REQUESTS_PER_MINUTE_PER_API_KEY: '1000000000',
})

/** If the data folder is kept, the keys are stored in it, because the data cannot be decrypted without them. */
async function secretsOf(data: string | undefined): Promise<Record<string, string>> {
  const fresh = {
    POSTERN_AUTH_SECRETS: `1:${randomBytes(32).toString('hex')}`,
    POSTERN_MASTER_KEYS: `1:${randomBytes(32).toString('hex')}`,
  }
  if (data === undefined) return fresh
  const file = path.join(data, 'secrets.json')
  if (!existsSync(file)) await writeFile(file, JSON.stringify(fresh), { mode: 0o600 })
  return JSON.parse(await readFile(file, 'utf8'))
}

/** The log message with which a process reports readiness. An intake reports it when its last listener has started. */
function readyWord(name: PartName | 'all', env: Record<string, string>): string {
  const takesMail = env['POSTERN_SUBMISSIONS_PORT'] !== undefined
  // The intake is the last part to start.
  if (name === 'all')
    return env['POSTERN_INBOUND_PORT'] ? 'listening for inbound mail' : readyWord('intake', env)
  return {
    api: 'serving',
    worker: 'working',
    intake: takesMail ? 'listening for submissions' : 'listening for bounces',
  }[name]
}
let started = 0
/** Long enough for a busy machine. */
const readyMs = 180_000

/** The log is written to a file, because writing it is part of the work being measured. */
async function startPart(
  home: string,
  name: PartName | 'all',
  env: Record<string, string>,
  command: string[],
): Promise<Part> {
  const logFile = path.join(home, `${name}-${++started}.log`)
  const log = openSync(logFile, 'a')
  const child = spawn(process.execPath, command, { env, stdio: ['ignore', log, log] })
  closeSync(log)
  let isEnded = false
  child.once('exit', (code, signal) => {
    if (!isEnded)
      process.stdout.write(`postern ${name} exited unexpectedly: ${signal ?? `exit code ${code}`}\n`)
  })
  const end = (signal: NodeJS.Signals) => async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    isEnded = true
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
  for (const deadline = Date.now() + readyMs; Date.now() < deadline; await sleep(50)) {
    const lines = (await readFile(logFile, 'utf8')).split('\n')
    const line = lines.find((text) => text.includes(`"msg":"${readyWord(name, env)}"`))
    if (line)
      return { pid: child.pid ?? 0, ready: JSON.parse(line), stop: end('SIGTERM'), kill: end('SIGKILL') }
    if (child.exitCode !== null) throw new Error(`postern ${name} exited:\n${lines.join('\n')}`)
  }
  await end('SIGKILL')()
  throw new Error(`postern ${name} did not become ready:\n${await readFile(logFile, 'utf8')}`)
}

function portOf({ ready }: Part): number {
  const [address] = ready['addresses'] as { port: number }[]
  return address?.port ?? 0
}

async function postmasterPid(home: string): Promise<number> {
  return Number.parseInt(await readFile(path.join(home, 'data/postmaster.pid'), 'utf8'), 10)
}

async function onDatabase(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}
