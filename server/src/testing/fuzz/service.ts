import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { loadConfig } from '../../config/config.ts'
import { settings as known } from '../../config/table.ts'
import { createContext } from '../../context/context.ts'
import { createAdministrator } from '../../core/control/access/administrators.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { cleanUp } from '../harness/cleanup.ts'
import type { TestDatabase } from '../harness/database.ts'
import { bareEnvironment, program } from '../harness/postern-process.ts'
import { eventually } from '../harness/waiting.ts'
import { steadyPort } from '../peers/steady-port.ts'

/** `postern api` as a separate process, started as an operator would start it, so that it can use its own CPU core. */
export interface Service {
  url: string
  makeAdmin(email: string): Promise<{ id: number; email: string; password: string; totpUri: string }>
  /** An access token, valid for ten minutes. */
  tokenOf(email: string): Promise<string>
  /** Everything the process has logged. */
  log(): Promise<string>
}

/** Caps are not modelled here; customer/conformance/caps.test.ts covers them. */
const withoutCaps = Object.fromEntries(
  Object.values(known).flatMap(({ name }) => (name.startsWith('POSTERN_MAX_') ? [[name, '1000000']] : [])),
)

export async function startService(
  database: TestDatabase,
  changes: Record<string, string> = {},
): Promise<Service> {
  const port = await steadyPort()
  const settings = {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_DATABASE_POOL_SIZE: '12',
    POSTERN_PUBLIC_URL: 'http://localhost:8080',
    POSTERN_HTTP_PORT: String(port),
    POSTERN_AUTH_SECRETS: `1:${'test-secret-'.repeat(4)}`,
    POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
    POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: '1000000000',
    POSTERN_REQUESTS_PER_MINUTE_PER_USER: '1000000000',
    POSTERN_TESTS_PER_MINUTE_PER_ENDPOINT: '1000000000',
    POSTERN_REPLAYS_PER_MINUTE_PER_ENDPOINT: '1000000000',
    POSTERN_WEBHOOK_PORTS: '443, 8443',
    POSTERN_LOG_LEVEL: 'warn',
    ...withoutCaps,
    // SES is configured but never called, because no worker runs.
    ...('sesRegion' in known
      ? { POSTERN_SES_REGION: 'eu-west-1', POSTERN_SES_ACCOUNT_ID: '123456789012' }
      : {}),
    ...changes,
  }
  const home = await mkdtemp(path.join(tmpdir(), 'postern-requests-'))
  cleanUp(() => rm(home, { recursive: true, force: true }))
  const logFile = path.join(home, 'log')
  const url = await serve(settings, port, logFile)

  const context = createContext(loadConfig(settings), createLogger('silent'), 'postern test')
  cleanUp(() => context.close())
  const deps = { auth: context.auth, adminDb: context.db.admin, identityDb: context.db.identity }
  return {
    url,
    async makeAdmin(email) {
      const { userId, password, totpUri } = await createAdministrator(deps, email, 'Ada')
      return { id: userId, email, password, totpUri }
    },
    tokenOf: async (email) => (await context.signIn.issueShellToken(email)).token,
    log: () => readFile(logFile, 'utf8'),
  }
}

async function serve(settings: Record<string, string>, port: number, logFile: string): Promise<string> {
  const log = openSync(logFile, 'a')
  const env = { ...bareEnvironment, ...settings }
  const child = spawn(process.execPath, [program, 'api'], { env, stdio: ['ignore', log, log] })
  cleanUp(() => stop(child))
  const url = `http://127.0.0.1:${port}`
  const isReady = () =>
    eventually('the API is ready', async () => {
      if (child.exitCode !== null) throw new Error(`postern api exited with code ${child.exitCode}`)
      const response = await fetch(`${url}/readyz`).catch(() => undefined)
      return response?.ok === true
    })
  await isReady().catch(async (error: Error) => {
    throw new Error(`${error.message}:\n${await readFile(logFile, 'utf8')}`)
  })
  return url
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
