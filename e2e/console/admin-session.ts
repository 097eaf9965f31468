import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
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
 * An administrator's desk: a `postern all` on a PostgreSQL of its own, a mail server that takes everything and reports
 * back, an HTTPS receiver for webhooks, and a browser in which Ada can sign in.
 */
export interface Desk {
  url: string
  /** Ada's program, to make what a scenario begins with. */
  admin: Caller
  ada: Person
  grace: Person
  browser: Browser
  receiver: Receiver
  database: TestDatabase
  process: PosternProcess
  postern(...args: string[]): Promise<string>
}

export async function openDesk(settings: Record<string, string> = {}): Promise<Desk> {
  const folder = await mkdtemp(path.join(tmpdir(), 'postern-desk-'))
  cleanUp(() => rm(folder, { recursive: true, force: true }))
  const bouncePort = await steadyPort()
  const [database, receiver, sink] = await Promise.all([
    testDatabase(),
    startReceiver(),
    startDevSink({ folder, bouncePort, say: () => undefined }),
  ])
  cleanUp(() => sink.close())
  const port = await steadyPort()
  const url = `http://127.0.0.1:${port}`
  const env = {
    ...bareEnvironment,
    POSTERN_DATABASE_URL: database.url,
    POSTERN_DATABASE_OWNER_URL: database.superuserUrl,
    POSTERN_PUBLIC_URL: url,
    POSTERN_HTTP_PORT: String(port),
    POSTERN_AUTH_SECRETS: `1:${'secret-of-the-desk-'.repeat(3)}`,
    POSTERN_MASTER_KEYS: `1:${'5b'.repeat(32)}`,
    POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: '1000000',
    POSTERN_REQUESTS_PER_MINUTE_PER_USER: '1000000',
    POSTERN_MX_HOST: 'mx.postern.example.net',
    POSTERN_RETURN_PATH_HOST: 'return.postern.example.net',
    // Nobody is asked: what is verified, the scenario says.
    POSTERN_DNS_SERVERS: '127.0.0.1:9',
    POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}`,
    POSTERN_INTAKE_HOST: '127.0.0.1',
    POSTERN_BOUNCE_PORT: String(bouncePort),
    ...receiver.settings,
    ...settings,
  }
  const postern = (...args: string[]) => runPostern(env, ...args)
  const [process, browser] = await Promise.all([startPosternAll(env), openBrowser(url)])
  const appoint = async (email: string, name: string) => ({
    email,
    ...credentialsIn(await postern('admin', 'create', '--email', email, '--name', name)),
  })
  const hired = await Promise.all([appoint('ada@example.com', 'Ada'), appoint('grace@example.com', 'Grace')])
  const admin = new Caller(url, (await postern('token', '--email', hired[0].email)).trim())
  const { data } = await body<{ data: { id: number; email: string }[] }>(200, admin.get('/admin/users'))
  // Who was first is not known.
  const idOf = (person: { email: string }) => data.find(({ email }) => email === person.email)?.id ?? 0
  const [ada, grace] = [
    { ...hired[0], id: idOf(hired[0]) },
    { ...hired[1], id: idOf(hired[1]) },
  ]
  return { url, admin, ada, grace, browser, receiver, database, process, postern }
}

function credentialsIn(printed: string): Pick<Person, 'password' | 'otpauth'> {
  const password = /password\s+(\S+)/.exec(printed)?.[1]
  const otpauth = /otpauth:\S+/.exec(printed)?.[0]
  if (!password || !otpauth) throw new Error(`admin create printed no credentials:\n${printed}`)
  return { password, otpauth }
}
