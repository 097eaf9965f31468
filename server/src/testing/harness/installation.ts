import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { signerKey as signerKeyOf } from '../../config/values.ts'
import { publicKeyOf, signingKeyFrom, writeKeys } from '../../core/control/audit/keys.ts'
import { migrate } from '../../platform/db/migrate.ts'
import { fixtures } from '../fixtures/fixtures.ts'
import { makeCertificate } from '../peers/certificate.ts'
import { type DnsRecord, startDns } from '../peers/dns.ts'
import { Postfix } from '../peers/postfix.ts'
import { startCluster } from '../peers/postgres.ts'
import { steadyPort } from '../peers/steady-port.ts'
import { cleanUp } from './cleanup.ts'
import { Client } from './client.ts'
import type { TestDatabase } from './database.ts'
import { bareEnvironment, runPostern, startPostern, startPosternAll } from './postern-process.ts'

/**
 * A complete, correct installation as an operator would run it: its own PostgreSQL with durable storage, restricted
 * logins, DNS, an MTA, a certificate and `postern all`. A second migrated database (`twin`) is there for tests to
 * break.
 */
export async function startInstallation() {
  const home = await mkdtemp(path.join(tmpdir(), 'postern-installation-'))
  cleanUp(() => rm(home, { recursive: true, force: true }))
  // PostgreSQL runs as a different user.
  await chmod(home, 0o755)
  const [cluster, dns] = await Promise.all([
    startCluster({ directory: path.join(home, 'postgres') }),
    startDns(),
  ])
  cleanUp(() => cluster.stop())
  const query = onCluster(cluster.url)
  await query('postgres', `create role postern_app login noinherit`)
  await query('postgres', 'create database main')
  const ownerUrl = urlOf(cluster.url, 'main', 'postgres')
  await migrate({ ownerUrl, appUser: 'postern_app', log: () => {} })
  await query('postgres', 'create role postern_signer login noinherit in role postern_readonly')
  await query('postgres', 'create database twin template main')

  const listeners = {
    withoutDsn: { port: await steadyPort(), settings: { smtpd_discard_ehlo_keywords: 'dsn' } },
    small: { port: await steadyPort(), settings: { message_size_limit: '10240000' } },
    sevenBit: { port: await steadyPort(), settings: { smtpd_discard_ehlo_keywords: '8bitmime,smtputf8' } },
    closed: { port: await steadyPort(), settings: { smtpd_relay_restrictions: 'reject' } },
  }
  const postfix = await Postfix.open({ sinkPort: 9, feedbackPort: 9, listeners: Object.values(listeners) })
  // Port 25 on a loopback address that no other process uses.
  const intakeHost = ['127', randomInt(1, 255), randomInt(255), randomInt(1, 255)].join('.')
  await dns.setZone('.', zoneOf(intakeHost))
  const certificate = makeCertificate({
    names: ['localhost', 'mx.postern.test', 'bounces.postern.test'],
    days: 90,
  })
  const httpPort = await steadyPort()
  const signerKey = `signer-1:${'4b'.repeat(32)}`
  const signer = {
    POSTERN_AUDIT_SIGNER_SOCKET: path.join(home, 'signer'),
    POSTERN_AUDIT_CHECKPOINT_FILE: path.join(home, 'checkpoints'),
  }
  const signerEnvironment = {
    ...{ ...bareEnvironment, ...signer, POSTERN_SIGNER_KEY: signerKey },
    POSTERN_SIGNER_DATABASE_URL: urlOf(cluster.url, 'main', 'postern_signer'),
  }
  const env = {
    ...bareEnvironment,
    ...signer,
    POSTERN_AUDIT_PUBLIC_KEYS: publicHalfOf(signerKey),
    POSTERN_DATABASE_URL: urlOf(cluster.url, 'main', 'postern_app:swordfish'),
    POSTERN_PUBLIC_URL: `http://localhost:${httpPort}`,
    POSTERN_HTTP_PORT: String(httpPort),
    POSTERN_AUTH_SECRETS: `1:${'secret-of-the-doctor-test-'.repeat(2)}`,
    POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
    POSTERN_DNS_SERVERS: dns.server,
    POSTERN_MX_HOST: 'mx.postern.test',
    POSTERN_RETURN_PATH_HOST: 'bounces.postern.test',
    POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${postfix.port}`,
    POSTERN_SYSTEM_MAIL_FROM: 'postern@postern.test',
    POSTERN_INTAKE_HOST: intakeHost,
    POSTERN_BOUNCE_PORT: '25',
    POSTERN_INBOUND_PORT: String(await steadyPort()),
    POSTERN_SUBMISSION_PORT: String(await steadyPort()),
    POSTERN_SUBMISSIONS_PORT: String(await steadyPort()),
    POSTERN_INTAKE_TLS_CERTIFICATE: certificate.files.certificate,
    POSTERN_INTAKE_TLS_KEY: certificate.files.key,
  }
  await startPostern('signer', signerEnvironment, ['signing'])
  const all = await startPosternAll(env)
  await runPostern(env, 'admin', 'create', '--email', 'ada@example.com')
  const token = (await runPostern(env, 'token', '--email', 'ada@example.com')).trim()
  const main: TestDatabase = {
    url: env.POSTERN_DATABASE_URL,
    superuserUrl: ownerUrl,
    query: (text, values) => query('main', text, values),
  }
  while (
    (await main.query(`select from jobs.job where name = 'chores' and state = 'completed'`)).length === 0
  ) {
    await sleep(50)
  }
  const make = fixtures(main, new Client(all.url, token))
  const project = await make.makeProject()
  const domain = await make.makeDomain(project.id, { mta_provider: 'service', status: 'verified' })
  await main.query(`update control.dns_records set status = 'verified' where domain_id = $1`, [domain.id])
  await main.query(
    `insert into mail.usage (project_id, period, starts_on, accepted)
     values ($1, 'month', date_trunc('month', postern.now() at time zone 'UTC')::date, 1)`,
    [project.id],
  )
  const publish = (changes: (record: DnsRecord) => DnsRecord = (record) => record) =>
    dns.setZone(
      '.',
      `${zoneOf(intakeHost)}\n${domain.dns_records.map((record) => lineOf(changes(record as DnsRecord))).join('\n')}`,
    )
  await publish()
  return {
    env,
    main,
    /** Runs a statement in any database of the cluster, as the superuser. */
    query,
    urlOf: (database: string, login = 'postern_app') => urlOf(cluster.url, database, login),
    listeners,
    postfix,
    dns,
    domain,
    /** Publishes the domain's DNS records, with the specified changes. */
    publish,
    foreignServerUrl: await startForeignServer(),
  }
}

const onCluster =
  (clusterUrl: string) =>
  async <Row extends pg.QueryResultRow>(
    database: string,
    text: string,
    values: unknown[] = [],
  ): Promise<Row[]> => {
    const client = new pg.Client({ connectionString: urlOf(clusterUrl, database, 'postgres') })
    await client.connect()
    try {
      return (await client.query<Row>(text, values)).rows
    } finally {
      await client.end()
    }
  }

const publicHalfOf = (key: string): string => {
  const seed = signerKeyOf(key)
  return seed ? (writeKeys(publicKeyOf(signingKeyFrom(seed)))[0] ?? '') : ''
}

function urlOf(clusterUrl: string, database: string, login: string): string {
  const { host } = new URL(clusterUrl)
  return `postgres://${login}@${host}/${database}`
}

/** A web server that is not Postern. */
async function startForeignServer(): Promise<string> {
  const server = createServer((_request, response) => response.end('<h1>It works!</h1>')).listen(
    0,
    '127.0.0.1',
  )
  await once(server, 'listening')
  cleanUp(async () => void server.close())
  return `http://localhost:${(server.address() as AddressInfo).port}`
}

/** DNS records for the installation's names: one correct set and several broken ones. */
const zoneOf = (intakeHost: string): string => `
mx.postern.test.              3600 A     ${intakeHost}
mail.postern.test.            3600 A     ${intakeHost}
bounces.postern.test.         3600 MX    10 mail.postern.test.
bounces.postern.test.         3600 TXT   "v=spf1 ip4:198.51.100.7 -all"
mta.postern.test.             3600 A     198.51.100.7
7.100.51.198.in-addr.arpa.    3600 PTR   mta.postern.test.
alias.postern.test.           3600 CNAME mx.postern.test.
nowhere-to-go.postern.test.   3600 MX    10 nowhere.postern.test.
deaf.postern.test.            3600 MX    10 silent.postern.test.
silent.postern.test.          3600 A     127.255.255.254
another.postern.test.         3600 MX    10 mail.postern.test.
twice.postern.test.           3600 TXT   "v=spf1 ip4:198.51.100.7 -all"
twice.postern.test.           3600 TXT   "v=spf1 mx -all"
nameless.postern.test.        3600 TXT   "v=spf1 ip4:198.51.100.8 -all"
misnamed.postern.test.        3600 TXT   "v=spf1 ip4:198.51.100.9 -all"
9.100.51.198.in-addr.arpa.    3600 PTR   mta.postern.test.
`

const lineOf = ({ name, type, value }: DnsRecord): string => {
  const data =
    type === 'TXT' ? (value.match(/.{1,255}/gs) ?? []).map((chunk) => `"${chunk}"`).join(' ') : `${value}.`
  return `${name}. 3600 ${type} ${data}`
}
