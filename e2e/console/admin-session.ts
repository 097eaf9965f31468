import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { beforeEach } from 'node:test'
import { cleanUp } from '../../server/src/testing/harness/cleanup.ts'
import { type TestDatabase, testDatabase } from '../../server/src/testing/harness/database.ts'
import {
  bareEnvironment,
  type PosternProcess,
  runPostern,
  startPosternAll,
} from '../../server/src/testing/harness/postern-process.ts'
import { startDevSink } from '../../server/src/testing/peers/dev-sink.ts'
import { steadyPort } from '../../server/src/testing/peers/steady-port.ts'
import { type Receiver, startReceiver } from '../../server/src/testing/peers/webhook-receiver.ts'
import { Caller } from '../caller.ts'
import { body } from '../stage.ts'
import { type Browser, openBrowser, type Person } from './browser.ts'

/**
 * An administrator's session: `postern all` with its own PostgreSQL server, a mail server that accepts all mail and
 * returns reports, an HTTPS receiver for webhooks, and a browser in which Ada can sign in.
 */
export interface AdminSession {
  url: string
  /** Ada's API client, to set up a scenario. */
  admin: Caller
  ada: Person
  grace: Person
  browser: Browser
  receiver: Receiver
  database: TestDatabase
  process: PosternProcess
  postern(...args: string[]): Promise<string>
}

export async function openAdminSession(
  settings: Record<string, string> = {},
  /** Passkeys need a name. */
  host: '127.0.0.1' | 'localhost' = '127.0.0.1',
): Promise<AdminSession> {
  const folder = await mkdtemp(path.join(tmpdir(), 'postern-session-'))
  cleanUp(() => rm(folder, { recursive: true, force: true }))
  const bouncePort = await steadyPort()
  const [database, receiver, sink] = await Promise.all([
    testDatabase(),
    startReceiver(),
    startDevSink({ folder, bouncePort, say: () => undefined }),
  ])
  cleanUp(() => sink.close())
  // Everyone in a scenario signs in from one address, and an address is limited to ten attempts with less than a minute
  // between them.
  beforeEach(async () => void (await database.query('delete from control.sign_in_rates')))
  const port = await steadyPort()
  const url = `http://${host}:${port}`
  const env = {
    ...bareEnvironment,
    POSTERN_DATABASE_URL: database.url,
    POSTERN_DATABASE_OWNER_URL: database.superuserUrl,
    POSTERN_PUBLIC_URL: url,
    POSTERN_HTTP_PORT: String(port),
    POSTERN_AUTH_SECRETS: `1:${'secret-of-the-session-'.repeat(3)}`,
    POSTERN_MASTER_KEYS: `1:${'5b'.repeat(32)}`,
    POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: '1000000',
    POSTERN_REQUESTS_PER_MINUTE_PER_USER: '1000000',
    POSTERN_MX_HOST: 'mx.postern.example.net',
    POSTERN_RETURN_PATH_HOST: 'return.postern.example.net',
    // No DNS server: scenarios set the verification state themselves.
    POSTERN_DNS_SERVERS: '127.0.0.1:9',
    POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}`,
    POSTERN_INTAKE_HOST: '127.0.0.1',
    POSTERN_BOUNCE_PORT: String(bouncePort),
    ...receiver.settings,
    ...settings,
  }
  const postern = (...args: string[]) => runPostern(env, ...args)
  const [process, browser] = await Promise.all([startPosternAll(env), openBrowser(url)])
  const createAdministrator = async (email: string, name: string) => ({
    email,
    ...credentialsIn(await postern('admin', 'create', '--email', email, '--name', name)),
  })
  const administrators = await Promise.all([
    createAdministrator('ada@example.com', 'Ada'),
    createAdministrator('grace@example.com', 'Grace'),
  ])
  const admin = new Caller(url, (await postern('token', '--email', administrators[0].email)).trim())
  const { data } = await body<{ data: { id: number; email: string }[] }>(200, admin.get('/admin/users'))
  // The administrators are created concurrently, so their order varies.
  const idOf = (person: { email: string }) => data.find(({ email }) => email === person.email)?.id ?? 0
  const [ada, grace] = [
    { ...administrators[0], id: idOf(administrators[0]) },
    { ...administrators[1], id: idOf(administrators[1]) },
  ]
  return { url, admin, ada, grace, browser, receiver, database, process, postern }
}

function credentialsIn(printed: string): Pick<Person, 'password' | 'otpauth'> {
  const password = /password\s+(\S+)/.exec(printed)?.[1]
  const otpauth = /otpauth:\S+/.exec(printed)?.[0]
  if (!password || !otpauth) throw new Error(`admin create printed no credentials:\n${printed}`)
  return { password, otpauth }
}
