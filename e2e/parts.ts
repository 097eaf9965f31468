import pg from 'pg'
import { type TestDatabase, testDatabase } from '../server/src/testing/harness/database.ts'
import {
  bareEnvironment,
  type PosternProcess,
  runPostern,
  startPostern,
} from '../server/src/testing/harness/postern-process.ts'
import { makeCertificate } from '../server/src/testing/peers/certificate.ts'
import { type DnsRecord, startDns } from '../server/src/testing/peers/dns.ts'
import { FaultyProxy } from '../server/src/testing/peers/faulty-proxy.ts'
import { Postfix } from '../server/src/testing/peers/postfix.ts'
import { type SesPeer, startSesPeer } from '../server/src/testing/peers/ses-peer.ts'
import { Sink } from '../server/src/testing/peers/sink.ts'
import { type SnsPeer, startSnsPeer } from '../server/src/testing/peers/sns-peer.ts'
import { steadyPort } from '../server/src/testing/peers/steady-port.ts'

/**
 * The parts of an installation, each of them real and in a process of its own:
 *
 *   postern api → PostgreSQL → postern worker → a line → Postfix → a sink that takes anybody's mail
 *                                postern intake ← what became of it ← Postfix
 *   postern intake → PostgreSQL, for who brings mail by SMTP, as a customer or as a stranger
 *
 * Customers' records are looked up in Knot. Amazon SES and SNS, which cannot be had, are peers in the scenario's process.
 */
export interface Parts {
  apiUrl: string
  /** A command of the operator, to its end; what it printed. */
  postern(...args: string[]): Promise<string>
  processes: { api: PosternProcess; worker: PosternProcess; intake: PosternProcess }
  /** The worker is ended, at once and without a word, and another is started. So much later, by the database's clock. */
  replaceWorker(laterMinutes?: number): Promise<void>
  database: TestDatabase
  dns: Dns
  /** What the worker hands its mail over on; as quick as can be, unless a scenario slows it down. */
  line: FaultyProxy
  postfix: Postfix
  sink: Sink
  ses: SesPeer
  sns: SnsPeer
  /** Where reports about mail come in. */
  intakePort: number
  /** Where customers bring mail by SMTP: with STARTTLS, and with TLS from the first octet. */
  submissionPorts: { startTls: number; tls: number }
  /** The MX of customers' domains. */
  inboundPort: number
  /** After it was stopped; at the same ports. */
  startIntake(): Promise<void>
}

export interface Dns {
  server: string
  /** From now on these are there, too. */
  publish(records: readonly DnsRecord[]): Promise<void>
}

export interface PartOptions {
  /** What the database's clock shows when the processes start, in UTC, such as `06:00`; the machine's time by default. */
  timeOfDay?: string
  /** Settings of every process besides those that all scenarios have. */
  settings?: Record<string, string> | ((usual: Record<string, string>) => Record<string, string>)
}

/** Where customers' return paths and MX records point to. */
export const returnPathHost = 'return.postern.example.net'
export const mxHost = 'mx.postern.example.net'

export async function openParts({ settings = {}, timeOfDay }: PartOptions): Promise<Parts> {
  const intakePort = await steadyPort()
  const submissionPorts = { startTls: await steadyPort(), tls: await steadyPort() }
  const inboundPort = await steadyPort()
  const { files } = makeCertificate()
  const [database, dns, sink, ses, sns] = await Promise.all([
    testDatabase(),
    openDns(),
    Sink.open(),
    startSesPeer(),
    startSnsPeer(),
  ])
  const postfix = await Postfix.open({ sinkPort: sink.port, feedbackPort: intakePort })
  const line = await FaultyProxy.open(postfix.port)
  const usual: Record<string, string> = {
    ...bareEnvironment,
    POSTERN_DATABASE_URL: database.url,
    POSTERN_DATABASE_OWNER_URL: database.superuserUrl,
    POSTERN_PUBLIC_URL: 'http://localhost:8080',
    POSTERN_HTTP_PORT: '0',
    POSTERN_AUTH_SECRETS: `1:${'secret-of-the-stage-'.repeat(3)}`,
    POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
    // Scenarios that are not about the limits are not to meet them.
    POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: '1000000',
    POSTERN_REQUESTS_PER_MINUTE_PER_USER: '1000000',
    POSTERN_DNS_SERVERS: dns.server,
    POSTERN_MX_HOST: mxHost,
    POSTERN_RETURN_PATH_HOST: returnPathHost,
    POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${line.port}`,
    ...ses.settings,
    ...sns.settings,
    AWS_ACCESS_KEY_ID: process.env['AWS_ACCESS_KEY_ID'] ?? '',
    AWS_SECRET_ACCESS_KEY: process.env['AWS_SECRET_ACCESS_KEY'] ?? '',
    POSTERN_INTAKE_HOST: '127.0.0.1',
    POSTERN_BOUNCE_PORT: String(intakePort),
    POSTERN_FEEDBACK_REPORTERS: '127.0.0.1',
    POSTERN_INTAKE_TLS_CERTIFICATE: files.certificate,
    POSTERN_INTAKE_TLS_KEY: files.key,
    POSTERN_SUBMISSION_PORT: String(submissionPorts.startTls),
    POSTERN_SUBMISSIONS_PORT: String(submissionPorts.tls),
    POSTERN_INBOUND_PORT: String(inboundPort),
  }
  const env = { ...usual, ...(typeof settings === 'function' ? settings(usual) : settings) }
  const postern = (...args: string[]) => runPostern(env, ...args)
  let aheadSeconds = timeOfDay === undefined ? 0 : await startClockAt(timeOfDay, database)
  const [api, worker, intake] = await Promise.all([
    startPostern('api', env, ['serving']),
    startPostern('worker', env, ['working']),
    startPostern('intake', env, intakeIsUp),
  ])
  const processes = { api, worker, intake }
  const startIntake = async () => {
    processes.intake = await startPostern('intake', env, intakeIsUp)
  }
  const replaceWorker = async (laterMinutes = 0) => {
    processes.worker.kill()
    await processes.worker.exited
    aheadSeconds += 60 * laterMinutes
    await database.query(setClock(database, aheadSeconds))
    processes.worker = await startPostern('worker', env, ['working'])
  }
  return {
    ...{ apiUrl: api.url, postern, processes, replaceWorker, database, dns, line, postfix, sink, ses, sns },
    ...{ intakePort, submissionPorts, inboundPort, startIntake },
  }
}

/** For sessions that begin after it: one that is open keeps the clock that it began with. */
function setClock({ url }: TestDatabase, aheadSeconds: number): string {
  const name = new URL(url).pathname.slice(1)
  return `alter database ${name} set postern.clock_offset = '${aheadSeconds} seconds'`
}

/** Forward or back, on the same day. Returns by how many seconds the clock is ahead. */
async function startClockAt(timeOfDay: string, database: TestDatabase): Promise<number> {
  const client = new pg.Client({ connectionString: database.superuserUrl })
  await client.connect()
  try {
    const { rows } = await client.query<{ seconds: string }>(
      `select extract(epoch from date_trunc('day', now(), 'UTC') + $1::interval - now()) as seconds`,
      [timeOfDay],
    )
    const aheadSeconds = Number(rows[0]?.seconds)
    await client.query(setClock(database, aheadSeconds))
    return aheadSeconds
  } finally {
    await client.end()
  }
}

const intakeIsUp = ['listening for bounces', 'listening for submissions', 'listening for inbound mail']

/** All names there are, in one zone; of the operator's own, the one that bounces come home to. */
export async function openDns(): Promise<Dns> {
  const records: DnsRecord[] = [
    { name: returnPathHost, type: 'A', value: '127.0.0.1' },
    { name: returnPathHost, type: 'MX', value: `10 ${returnPathHost}` },
    { name: returnPathHost, type: 'TXT', value: 'v=spf1 ip4:127.0.0.1 -all' },
  ]
  const knot = await startDns({ '.': records })
  return {
    server: knot.server,
    publish(more) {
      records.push(...more)
      return knot.setZone('.', records)
    },
  }
}
