import { execFile, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { killOnExit } from '../server/src/testing/harness/kill-on-exit.ts'
import { totpCode } from '../server/src/testing/harness/totp.ts'
import { startDevSink } from '../server/src/testing/peers/dev-sink.ts'
import { startDevViewer } from '../server/src/testing/peers/dev-viewer.ts'
import { type Cluster, startCluster } from '../server/src/testing/peers/postgres.ts'
import { buildConsole, isConsoleStale } from './console-build.ts'
import { type Customer, makeDemoCustomer } from './demo/customer.ts'
import { seedDemoData } from './demo/data.ts'
import { makeDemoSender, type Sender } from './demo/sender.ts'
import { buildDocumentation } from './dev/documentation.ts'
import { type LocalReceiver, startLocalReceiver } from './dev/local-receiver.ts'
import { welcome } from './dev/welcome.ts'
import { isSiteStale } from './site-build.ts'

/**
 * `npm run dev`: starts Postern for development. Uses POSTERN_DATABASE_URL if set, otherwise its own PostgreSQL under
 * .dev/. Applies migrations and, the first time, creates an administrator and demo data. Serves on 127.0.0.1 with a
 * worker (`postern all`) and a mail server that stores all mail (testing/peers/dev-sink.ts), and restarts when a file
 * changes. A local webhook receiver gets the events of the demo customer's project. The console is built first if it is
 * missing or outdated; the documentation is built in the background, unless --no-docs is given. With arguments, runs a
 * command for the running instance: `npm run dev code` prints the administrator's current TOTP code, `npm run dev token`
 * an access token, and `npm run dev -- audit verify` runs `postern audit verify` in its environment.
 *
 * Of the POSTERN_ environment variables only the two database URLs, the port, the resolvers and POSTERN_DEV_FOLDER
 * (instead of .dev/) are used. Without POSTERN_DNS_SERVERS the system's resolvers are used. They have no records for
 * the demo domains, so the domains stay pending.
 */
const root = path.resolve(import.meta.dirname, '..')
const program = path.join(root, 'server/src/bin/postern.js')
const email = 'admin@example.com'
const port = portOf(process.env['POSTERN_HTTP_PORT'] || '8080')
const url = `http://127.0.0.1:${port}`
const givenDatabase = process.env['POSTERN_DATABASE_URL'] || undefined

// The stored state belongs to a single database.
const home = path.resolve(process.env['POSTERN_DEV_FOLDER'] || path.join(root, '.dev'))
const state = path.join(home, givenDatabase ? `database-${digest(givenDatabase)}` : 'own')
/** The process id of the running instance, and the settings for its commands. */
const runningFile = path.join(home, 'running.json')
/** The server restarts when this file changes: it reads the names of the documentation's files at startup. */
const documentationFile = path.join(state, 'documentation')

interface Running {
  pid: number
  /** The folder with the administrator's credentials. */
  state: string
  settings: Record<string, string>
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort())

class Failed extends Error {}

try {
  const args = process.argv.slice(2)
  if (args.length === 0) await develop({ hasDocs: true })
  else if (args[0] === '--no-docs') await develop({ hasDocs: false })
  else if (args[0] === 'code' && args.length === 1) say(await codeNow())
  else await command(args[0] === 'token' && args.length === 1 ? ['token', '--email', email] : args)
} catch (error) {
  if (!stop.signal.aborted) {
    process.stderr.write(`${error instanceof Failed ? error.message : (error as Error).stack}\n`)
    process.exitCode = 1
  }
}

async function develop({ hasDocs }: { hasDocs: boolean }): Promise<void> {
  const other = await running()
  if (other)
    throw new Failed(
      `Another \`npm run dev\` is running in this folder (process ${other.pid}). Stop it first.`,
    )
  await requireFreePort()
  if (givenDatabase) await refuseForeign(givenDatabase)
  await mkdir(state, { recursive: true })
  await freshConsole()
  const bounces = await freePort()
  const sink = await startDevSink({ folder: path.join(state, 'mail'), bouncePort: bounces, say })
  const receiver = await startLocalReceiver(path.join(state, 'webhooks'), say)
  const viewer = await startDevViewer({
    mailFolder: path.join(state, 'mail'),
    webhookFolder: receiver.folder,
    webhookUrl: receiver.url,
  })
  const submission = await freePort()
  const cluster = givenDatabase ? undefined : await ownCluster()
  try {
    const databaseUrl = givenDatabase ?? (await databaseIn(cluster?.url ?? ''))
    const settings = await settingsFor(databaseUrl, { sink: sink.port, bounces, submission }, receiver)
    await writeFile(runningFile, JSON.stringify({ pid: process.pid, state, settings }), { mode: 0o600 })
    const env = environment(settings)
    step(`Migrating: ${(await postern(env, 'migrate')).split('\n').at(-1)}`)
    const isNew = !existsSync(path.join(state, 'administrator'))
    const credentials = await remembered('administrator', () => makeAdministrator(env))
    await serve(env, async () => {
      await remembered('demo-data', () => makeDemoData(env))
      const sender = JSON.parse(await remembered('sender', () => makeSender(env))) as Sender
      // The command says that they cannot be shown again; here they are, on each start.
      const shown = credentials.replace(/^(.*?\.) .*/, '$1')
      const note = isNew
        ? ''
        : `\n\nThese are the initial credentials. If they have been changed: npm run dev -- admin reset --email ${email}`
      const customer = JSON.parse(await remembered('customer', () => makeCustomer(env, sender))) as Customer
      const endpoint = await receiver.connect(
        { url, token: await postern(env, 'token', '--email', email) },
        sender.projectId,
      )
      const isStale = hasDocs && isSiteStale()
      const stored = givenDatabase ? undefined : path.relative('', home)
      const places = { url, email, mail: viewer.url, webhooks: `${viewer.url}/webhooks`, stored }
      say(welcome(`${shown}${note}`, { ...places, sender, customer, submission, endpoint, isStale }))
      if (isStale) void documentation()
    })
  } finally {
    await cluster?.stop()
    await sink.close()
    await receiver.close()
    await viewer.close()
    await rm(runningFile, { force: true })
  }
}

/** In the background: the build takes about a minute. */
async function documentation(): Promise<void> {
  try {
    await buildDocumentation(stop.signal)
    await writeFile(documentationFile, new Date().toISOString())
    say(`The documentation is built: ${url}/docs/ (the server restarts once)`)
  } catch (error) {
    if (!stop.signal.aborted) say(`The documentation could not be built:\n${(error as Error).message}`)
  }
}

async function freshConsole(): Promise<void> {
  if (!isConsoleStale()) return
  step('Building the console…')
  await buildConsole().catch(({ stderr, message }: Error & { stderr?: string }) => {
    throw new Failed(`The console could not be built:\n${stderr?.trim() || message}`)
  })
}

/** The demo administrator's current TOTP code, so no authenticator app is needed. */
async function codeNow(): Promise<string> {
  const { state: itsState } = await oneThatRuns()
  const otpauth = /otpauth:\S+/.exec(await readFile(path.join(itsState, 'administrator'), 'utf8'))
  if (!otpauth) throw new Failed('The stored credentials contain no TOTP secret.')
  return totpCode(otpauth[0])
}

/** Runs a command for the running instance on this terminal. */
async function command(args: string[]): Promise<void> {
  const one = await oneThatRuns()
  const child = spawn(process.execPath, [program, ...args], {
    env: environment(one.settings),
    stdio: 'inherit',
  })
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
}

async function oneThatRuns(): Promise<Running> {
  const one = await running()
  if (one) return one
  throw new Failed(
    '`npm run dev` is not running in this folder. Start it, and run this command in a second terminal.',
  )
}

async function running(): Promise<Running | undefined> {
  const text = await readFile(runningFile, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const found = JSON.parse(text) as Running
  try {
    process.kill(found.pid, 0)
    return found
  } catch {
    return undefined
  }
}

function step(line: string): void {
  stop.signal.throwIfAborted()
  say(line)
}

async function ownCluster(): Promise<Cluster> {
  step('Starting PostgreSQL…')
  try {
    return await startCluster({ directory: path.join(state, 'postgres') })
  } catch (error) {
    throw new Failed((error as Error).message)
  }
}

function environment(settings: Record<string, string>): Record<string, string> {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith('POSTERN_'))
  return { ...(Object.fromEntries(others) as Record<string, string>), ...settings }
}

async function settingsFor(
  databaseUrl: string,
  ports: { sink: number; bounces: number; submission: number },
  receiver: LocalReceiver,
): Promise<Record<string, string>> {
  const secret = (name: string) => async () => `${name}:${randomBytes(32).toString('hex')}`
  const owner = process.env['POSTERN_DATABASE_OWNER_URL']
  const resolvers = process.env['POSTERN_DNS_SERVERS']
  const certificate = await certificateFiles()
  return {
    POSTERN_DATABASE_URL: databaseUrl,
    ...(owner ? { POSTERN_DATABASE_OWNER_URL: owner } : {}),
    ...(resolvers ? { POSTERN_DNS_SERVERS: resolvers } : {}),
    POSTERN_MX_HOST: 'mx.postern.example',
    POSTERN_RETURN_PATH_HOST: 'bounces.postern.example',
    POSTERN_PUBLIC_URL: url,
    POSTERN_HTTP_PORT: String(port),
    POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${ports.sink}`,
    // The first demo plan: Free.
    POSTERN_CUSTOMER_PLAN_ID: '1',
    POSTERN_SYSTEM_MAIL_FROM: 'postern@postern.example',
    POSTERN_BOUNCE_PORT: String(ports.bounces),
    POSTERN_SUBMISSION_PORT: String(ports.submission),
    POSTERN_INTAKE_TLS_CERTIFICATE: certificate.certificate,
    POSTERN_INTAKE_TLS_KEY: certificate.key,
    POSTERN_AUTH_SECRETS: await remembered('auth-secrets', secret('1')),
    POSTERN_MASTER_KEYS: await remembered('master-keys', secret('dev')),
    POSTERN_LOG_LEVEL: 'warn',
    ...receiver.settings,
  }
}

/** A self-signed certificate for SMTP submission, created on the first start. */
async function certificateFiles(): Promise<{ certificate: string; key: string }> {
  const files = {
    certificate: path.join(state, 'certificate.pem'),
    key: path.join(state, 'certificate-key.pem'),
  }
  if (!existsSync(files.certificate)) {
    const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '3650']
    const output = ['-keyout', files.key, '-out', files.certificate]
    await promisify(execFile)('openssl', ['req', '-x509', ...kind, '-subj', '/CN=localhost', ...output])
  }
  return files
}

/** Runs a command and returns its output. On failure, the error contains the error output. */
async function postern(env: Record<string, string>, ...args: string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], { env })
    return stdout.trim()
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string }
    throw new Failed(`postern ${args.join(' ')} failed:\n${stderr?.trim() || message}`)
  }
}

/** Creates the administrator, or resets the credentials if they are not stored here. */
function makeAdministrator(env: Record<string, string>): Promise<string> {
  step(`Creating the administrator ${email}…`)
  return postern(env, 'admin', 'create', '--email', email, '--name', 'Ada Example').catch(
    (error: unknown) => {
      if (error instanceof Failed && error.message.includes('exists')) {
        return postern(env, 'admin', 'reset', '--email', email)
      }
      throw error
    },
  )
}

async function makeDemoData(env: Record<string, string>): Promise<string> {
  const tokenOf = (address: string) => postern(env, 'token', '--email', address)
  const makeAdmin = async (address: string, name: string) =>
    void (await postern(env, 'admin', 'create', '--email', address, '--name', name).catch(() => undefined))
  await seedDemoData({
    makeAdmin,
    url,
    databaseUrl: env['POSTERN_DATABASE_URL'] ?? '',
    tokenOf,
    administrator: email,
    say: step,
  })
  return new Date().toISOString()
}

/** Creates an API key for a demo project with a verified domain, to send the first message with. */
async function makeSender(env: Record<string, string>): Promise<string> {
  const token = await postern(env, 'token', '--email', email)
  return JSON.stringify(await makeDemoSender(url, env['POSTERN_DATABASE_URL'] ?? '', token))
}

/** Creates a customer who owns the project of the API key, for the app. */
async function makeCustomer(env: Record<string, string>, { projectId }: Sender): Promise<string> {
  const token = await postern(env, 'token', '--email', email)
  const databaseUrl = env['POSTERN_DATABASE_URL'] ?? ''
  const customer = await makeDemoCustomer({ url, databaseUrl, token }, projectId, (address) =>
    postern(env, 'users', 'reset-password', '--email', address),
  )
  return JSON.stringify(customer)
}

/** Runs until the server exits or this process receives a signal. */
async function serve(env: Record<string, string>, whenReady: () => Promise<void>): Promise<void> {
  if (!existsSync(documentationFile)) await writeFile(documentationFile, '')
  const paths = [path.join(root, 'server/src'), documentationFile].flatMap((one) => ['--watch-path', one])
  const watched = [...paths, '--watch-preserve-output']
  // The server runs in its own process group, so that Ctrl-C reaches only this process, which then stops the others in
  // order.
  const server = spawn(process.execPath, [...watched, program, 'all'], {
    env,
    stdio: 'inherit',
    detached: true,
  })
  killOnExit(server, { isGroup: true })
  const ended = once(server, 'exit')
  try {
    await Promise.race([
      ready(),
      ended.then(() => Promise.reject(new Failed('The server exited before it was ready.'))),
    ])
    await whenReady()
    await Promise.race([ended, once(stop.signal, 'abort')])
  } finally {
    server.kill('SIGTERM')
    await ended
  }
}

async function ready(): Promise<void> {
  while (!stop.signal.aborted) {
    const isReady = await fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady) return
    await sleep(100)
  }
  stop.signal.throwIfAborted()
}

async function freePort(): Promise<number> {
  const probe = createServer()
  probe.listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function requireFreePort(): Promise<void> {
  const probe = createServer()
  probe.listen(port, '127.0.0.1')
  await once(probe, 'listening').catch(() => {
    throw new Failed(
      `Port ${port} on 127.0.0.1 is already in use, possibly by another \`npm run dev\`. Stop it, or set POSTERN_HTTP_PORT.`,
    )
  })
  probe.close()
  await once(probe, 'close')
}

/** Returns a value that is created on the first start and then stored under .dev/. */
async function remembered(name: string, make: () => Promise<string>): Promise<string> {
  const file = path.join(state, name)
  const known = await readFile(file, 'utf8').catch(() => undefined)
  if (known !== undefined) return known
  const made = await make()
  await writeFile(file, made, { mode: 0o600 })
  return made
}

/** Rejects an existing installation, because it must not get demo data or a new administrator. */
async function refuseForeign(databaseUrl: string): Promise<void> {
  if (existsSync(path.join(state, 'administrator'))) return
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const { rows } = await client.query(`select to_regnamespace('control') is not null as taken`)
  await client.end()
  if (rows[0]?.taken) {
    throw new Failed(
      'This database already contains a Postern installation. `npm run dev` creates demo data and needs an empty database.',
    )
  }
}

async function databaseIn(clusterUrl: string): Promise<string> {
  const client = new pg.Client({ connectionString: clusterUrl })
  await client.connect()
  const { rowCount } = await client.query(`select from pg_database where datname = 'postern'`)
  if (rowCount === 0) await client.query('create database postern')
  await client.end()
  return clusterUrl.replace(/postgres$/, 'postern')
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}

function portOf(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) < 65_536) return Number(text)
  process.stderr.write(`POSTERN_HTTP_PORT must be a port from 0 to 65535, not "${text}".\n`)
  process.exit(1)
}
