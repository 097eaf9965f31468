import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { startCluster } from '../server/src/testing/postgres.ts'

/**
 * `npm run dev`: a Postern to try things on. Uses POSTERN_DATABASE_URL if it is set, else a PostgreSQL of its
 * own under .dev/; migrates; makes an administrator the first time; serves, and starts anew when a file changes.
 */
const root = path.resolve(import.meta.dirname, '..')
const state = path.join(root, '.dev')
const program = path.join(root, 'server/src/bin/postern.ts')
const email = 'admin@example.com'
const url = 'http://127.0.0.1:8080'

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const exec = promisify(execFile)

await mkdir(state, { recursive: true })
const cluster = process.env['POSTERN_DATABASE_URL']
  ? undefined
  : await startCluster(path.join(state, 'postgres'))
const env = {
  POSTERN_PUBLIC_URL: url,
  POSTERN_AUTH_SECRETS: await remembered('auth-secrets', async () => `1:${randomBytes(32).toString('hex')}`),
  ...(cluster ? { POSTERN_DATABASE_URL: await databaseIn(cluster.url) } : {}),
  ...process.env,
}
const postern = async (...args: string[]): Promise<string> =>
  (await exec(process.execPath, [program, ...args], { env })).stdout.trim()

try {
  say(await postern('migrate'))
  say(await remembered('administrator', () => postern('admin', 'create', '--email', email)))
  say(`\nAn access token, good for ten minutes:\n\n  ${await postern('token', '--email', email)}\n`)
  say(`Serving at ${url}; Ctrl-C stops it.\n`)
  await serve()
} finally {
  await cluster?.stop()
}

/** Until it ends, or this process is told to. */
async function serve(): Promise<void> {
  const watched = ['--watch-path', path.join(root, 'server/src'), '--watch-preserve-output']
  const server = spawn(process.execPath, [...watched, program, 'api'], { env, stdio: 'inherit' })
  // Ctrl-C reaches the child by itself; what is left to do here comes after its end.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => server.kill('SIGTERM'))
  await once(server, 'exit')
}

/** Made the first time and kept under .dev/. */
async function remembered(name: string, make: () => Promise<string>): Promise<string> {
  const file = path.join(state, name)
  const known = await readFile(file, 'utf8').catch(() => undefined)
  if (known !== undefined) return known
  const made = await make()
  await writeFile(file, made, { mode: 0o600 })
  return made
}

async function databaseIn(clusterUrl: string): Promise<string> {
  const client = new pg.Client({ connectionString: clusterUrl })
  await client.connect()
  const { rowCount } = await client.query(`select from pg_database where datname = 'postern'`)
  if (rowCount === 0) await client.query('create database postern')
  await client.end()
  return clusterUrl.replace(/postgres$/, 'postern')
}
