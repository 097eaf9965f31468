import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { emptyDatabase, type TestDatabase } from '../server/src/testing/database.ts'
import { type DnsRecord, startDns } from '../server/src/testing/dns.ts'
import {
  type PosternProcess,
  quickStart,
  runPostern,
  startPostern,
} from '../server/src/testing/postern-process.ts'
import { Postfix } from '../server/src/testing/postfix.ts'
import { Sink } from '../server/src/testing/sink.ts'
import { openSlowLine, type SlowLine } from '../server/src/testing/slow-line.ts'
import { steadyPort } from '../server/src/testing/steady-port.ts'

/**
 * The parts of an installation, each of them real and in a process of its own:
 *
 *   postern api → PostgreSQL → postern worker → a line → Postfix → a sink that takes anybody's mail
 *                                postern intake ← what became of it ← Postfix
 *
 * Customers' records are looked up in Knot.
 */
export interface Parts {
  apiUrl: string
  /** A command of the operator, to its end; what it printed. */
  postern(...args: string[]): Promise<string>
  processes: { api: PosternProcess; worker: PosternProcess; intake: PosternProcess }
  database: TestDatabase
  dns: Dns
  /** What the worker hands its mail over on; as quick as can be, unless a scenario slows it down. */
  line: SlowLine
  postfix: Postfix
  sink: Sink
  /** Where reports about mail come in. */
  intakePort: number
}

export interface Dns {
  server: string
  /** From now on these are there, too. */
  publish(records: readonly DnsRecord[]): Promise<void>
}

export interface PartOptions {
  /** How long Postfix tries to deliver a mail. */
  lifetimeSeconds?: number
}

/** Where customers' return paths and MX records point to. */
export const returnPathHost = 'return.postern.example.net'
const mxHost = 'mx.postern.example.net'

export async function openParts(options: PartOptions): Promise<Parts> {
  const intakePort = await steadyPort()
  const [database, dns, sink, start] = await Promise.all([
    emptyDatabase(),
    openDns(),
    Sink.open(),
    quickStart(),
  ])
  const postfix = await Postfix.open({ sinkPort: sink.port, feedbackPort: intakePort, ...options })
  const line = await openSlowLine(postfix.port, 0)
  const env = {
    ...start,
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
    POSTERN_INTAKE_HOST: '127.0.0.1',
    POSTERN_BOUNCE_PORT: String(intakePort),
  }
  const postern = (...args: string[]) => runPostern(env, ...args)
  await postern('migrate')
  const [api, worker, intake] = await Promise.all([
    startPostern('api', env, ['serving']),
    startPostern('worker', env, ['working']),
    startPostern('intake', env, []),
    answers(intakePort),
  ])
  const processes = { api, worker, intake }
  return { apiUrl: api.url, postern, processes, database, dns, line, postfix, sink, intakePort }
}

/** All names there are, in one zone; of the operator's own, the one that bounces come home to. */
async function openDns(): Promise<Dns> {
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

async function answers(port: number): Promise<void> {
  const isOpen = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(socket.destroy() !== undefined))
      socket.once('error', () => resolve(false))
    })
  for (let attempt = 0; attempt < 300; attempt++) {
    if (await isOpen()) return
    await sleep(100)
  }
  throw new Error(`nobody listens at port ${port}`)
}
