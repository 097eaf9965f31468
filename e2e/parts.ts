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
 * The parts of an installation, all real and in separate processes:
 *
 *   postern api → PostgreSQL → postern worker → proxy → Postfix → a sink that accepts all mail
 *                                postern intake ← delivery reports ← Postfix
 *   SMTP clients (customers and outside senders) → postern intake → PostgreSQL
 *
 * Knot serves the customers' DNS records. Amazon SES and SNS are replaced by peers in the scenario's process.
 */
export interface Parts {
  apiUrl: string
  /** Runs an operator's command and returns its output. */
  postern(...args: string[]): Promise<string>
  processes: { api: PosternProcess; worker: PosternProcess; intake: PosternProcess }
  /** Kills the worker, moves the database's clock forward by this many minutes, and starts another worker. */
  replaceWorker(laterMinutes?: number): Promise<void>
  database: TestDatabase
  dns: Dns
  /** The worker's connection to Postfix. It adds no delay unless a scenario slows it down. */
  line: FaultyProxy
  postfix: Postfix
  sink: Sink
  ses: SesPeer
  sns: SnsPeer
  /** The port for delivery reports. */
  intakePort: number
  /** The ports for submission by customers, with STARTTLS and with implicit TLS. */
  submissionPorts: { startTls: number; tls: number }
  /** The MX of customers' domains. */
  inboundPort: number
  /** Starts the intake again on the same ports after it was stopped. */
  startIntake(): Promise<void>
}

export interface Dns {
  server: string
  /** Adds these records. */
  publish(records: readonly DnsRecord[]): Promise<void>
  /** Replaces the content of a zone of its own with the lines of a zone file. */
  setZone(zone: string, lines: string): Promise<void>
}

export interface PartOptions {
  /**
   * The time on the database's clock when the processes start, in UTC, such as `06:00`. Default: the machine's time.
   */
  timeOfDay?: string
  /** Settings for every process, in addition to those common to all scenarios. */
  settings?: Record<string, string> | ((usual: Record<string, string>) => Record<string, string>)
}

/** The hosts to which customers' return paths and MX records point. */
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
    // High enough that only the scenarios that test the limits reach them.
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

/** Applies to database sessions that begin afterwards; existing sessions keep their clock. */
function setClock({ url }: TestDatabase, aheadSeconds: number): string {
  const name = new URL(url).pathname.slice(1)
  return `alter database ${name} set postern.clock_offset = '${aheadSeconds} seconds'`
}

/** Moves the clock forward or back within the same day. Returns the offset in seconds. */
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

/** Serves all names in one zone, starting with the operator's return-path host. */
export async function openDns(): Promise<Dns> {
  const records: DnsRecord[] = [
    { name: returnPathHost, type: 'A', value: '127.0.0.1' },
    { name: returnPathHost, type: 'MX', value: `10 ${returnPathHost}` },
    { name: returnPathHost, type: 'TXT', value: 'v=spf1 ip4:127.0.0.1 -all' },
  ]
  const knot = await startDns({ '.': records })
  return {
    server: knot.server,
    setZone: knot.setZone,
    publish(more) {
      records.push(...more)
      return knot.setZone('.', records)
    },
  }
}
