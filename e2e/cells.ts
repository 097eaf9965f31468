import pg from 'pg'
import { cleanUp } from '../server/src/testing/harness/cleanup.ts'
import {
  bareEnvironment,
  type PosternProcess,
  runPostern,
  startPostern,
} from '../server/src/testing/harness/postern-process.ts'
import { eventually } from '../server/src/testing/harness/waiting.ts'
import { Postfix } from '../server/src/testing/peers/postfix.ts'
import { type Cluster, startCluster } from '../server/src/testing/peers/postgres.ts'
import { Sink } from '../server/src/testing/peers/sink.ts'
import { steadyPort } from '../server/src/testing/peers/steady-port.ts'
import { Caller } from './caller.ts'
import { type Dns, mxHost, openDns, returnPathHost } from './parts.ts'
import { body, type Domain, makePlan, scopes, verify } from './stage.ts'

/**
 * Three PostgreSQL servers: one for the control database and one for each of two cells. `postern api` and `postern
 * worker` run on the control side, and `postern all` runs in each cell, with one Postfix and one sink. Cell b receives
 * all reports, regardless of which cell they are for.
 */
export interface CellStage {
  control: Site
  a: Site & { cluster: Cluster }
  b: Site
  admin: Caller
  sink: Sink
  postfix: Postfix
  /** A project in each cell, with a verified domain and a key. */
  shopA: Shop
  shopB: Shop
  /** The output of `postern cell join`. */
  said: string[]
  /** Restarts cell a's `postern all` process with different settings. */
  restartA(settings: Record<string, string>): Promise<string>
}

interface Site {
  url: string
  process: PosternProcess
  query: <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>
}

export interface Shop {
  projectId: number
  secret: string
  from: string
}

const database = 'postern'

async function openServer(besides: Record<string, string> = {}): Promise<Cluster> {
  // A server that is killed must not lose acknowledged commits.
  const cluster = await startCluster({
    besides: { synchronous_commit: 'on', max_connections: '100', ...besides },
  })
  cleanUp(() => cluster.stop())
  const client = new pg.Client({ connectionString: cluster.url })
  await client.connect()
  await client.query('create role postern_app login noinherit')
  await client.query(`create database ${database}`)
  await client.end()
  return cluster
}

const addressOf = ({ url }: Cluster, user: string): string => {
  const address = new URL(url)
  address.username = user
  address.pathname = `/${database}`
  return address.href
}

function queries(cluster: Cluster): Site['query'] {
  const pool = new pg.Pool({ connectionString: addressOf(cluster, 'postgres'), max: 1 })
  pool.on('error', () => {})
  cleanUp(() => pool.end())
  return async (text, values = []) => (await pool.query(text, values)).rows
}

export async function openCellStage(): Promise<CellStage> {
  const [servers, dns, sink, ports] = await Promise.all([
    Promise.all([openServer({ wal_level: 'logical' }), openServer(), openServer()]),
    openDns(),
    Sink.open(),
    Promise.all([steadyPort(), steadyPort()]),
  ])
  const [control, a, b] = servers
  const postfix = await Postfix.open({ sinkPort: sink.port, feedbackPort: ports[1] })
  const cellOf = (name: string, shards: string, cluster: Cluster) => ({
    ...{ name, shards, url: addressOf(cluster, 'postern_app'), owner_url: addressOf(cluster, 'postgres') },
    source_url: addressOf(control, 'postern_source'),
  })
  const env = {
    ...bareEnvironment,
    POSTERN_DATABASE_URL: addressOf(control, 'postern_app'),
    POSTERN_DATABASE_OWNER_URL: addressOf(control, 'postgres'),
    POSTERN_CELLS: JSON.stringify([cellOf('a', '0-511', a), cellOf('b', '512-1023', b)]),
    POSTERN_PUBLIC_URL: 'http://localhost:8080',
    POSTERN_HTTP_PORT: '0',
    POSTERN_AUTH_SECRETS: `1:${'secret-of-the-stage-'.repeat(3)}`,
    POSTERN_MASTER_KEYS: `1:${'5a'.repeat(32)}`,
    POSTERN_REQUESTS_PER_MINUTE_PER_ADDRESS: '1000000',
    POSTERN_REQUESTS_PER_MINUTE_PER_API_KEY: '1000000',
    POSTERN_DNS_SERVERS: dns.server,
    POSTERN_MX_HOST: mxHost,
    POSTERN_RETURN_PATH_HOST: returnPathHost,
    POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${postfix.port}`,
    POSTERN_INTAKE_HOST: '127.0.0.1',
  }
  const postern = (...args: string[]) => runPostern(env, ...args)
  const inControl = queries(control)
  await inControl('create role postern_replication nologin')
  await inControl('create role postern_source login replication bypassrls in role postern_replication')
  await postern('migrate')
  const said = [await postern('cell', 'join', '--name', 'a'), await postern('cell', 'join', '--name', 'b')]
  const inCell = (name: string, port: number, settings: Record<string, string> = {}) =>
    startPostern('all', { ...env, POSTERN_CELL: name, POSTERN_BOUNCE_PORT: String(port), ...settings }, [
      'serving',
      'working',
    ])
  const [api, , processA, processB] = await Promise.all([
    startPostern('api', env, ['serving']),
    startPostern('worker', env, ['working']),
    inCell('a', ports[0]),
    inCell('b', ports[1]),
  ])
  const admin = await signIn(api.url, postern)
  const cast = await enter(admin, dns, inControl)
  for (const [{ url }, shop] of [
    [processA, cast.a],
    [processB, cast.b],
  ] as const) {
    const caller = new Caller(url, shop.secret)
    const first = mailOf(shop, 'first@example.net')
    await eventually(
      'the project is replicated to its cell',
      async () => (await caller.post('/messages', first)).status === 202,
    )
  }
  return {
    control: { url: api.url, process: api, query: inControl },
    a: { url: processA.url, process: processA, query: queries(a), cluster: a },
    b: { url: processB.url, process: processB, query: queries(b) },
    ...{ admin, sink, postfix, said, shopA: cast.a, shopB: cast.b },
    async restartA(settings) {
      await processA.stop()
      return (await inCell('a', ports[0], settings)).url
    },
  }
}

async function signIn(url: string, postern: (...args: string[]) => Promise<string>): Promise<Caller> {
  const email = 'ada@postern.example.net'
  await postern('admin', 'create', '--email', email)
  return new Caller(url, (await postern('token', '--email', email)).trim())
}

/** Creates projects until there is one in each cell. The project's id determines its cell. */
async function enter(admin: Caller, dns: Dns, inControl: Site['query']): Promise<{ a: Shop; b: Shop }> {
  const users = await body<{ data: { id: number }[] }>(200, admin.get('/admin/users'))
  const { id: plan_id } = await makePlan(admin, {
    max_mails_per_day: 1_000_000,
    max_mails_per_month: 1_000_000,
  })
  const shops: { a?: Shop; b?: Shop } = {}
  while (!shops.a || !shops.b) {
    const { id } = await body<{ id: number }>(
      201,
      admin.post('/admin/projects', { name: 'Shop', user_id: users.data[0]?.id, plan_id }),
    )
    const [row] = await inControl<{ shard: number }>('select postern.shard_of($1) as shard', [id])
    const cell = (row?.shard ?? 0) < 512 ? 'a' : 'b'
    shops[cell] ??= await open(admin, dns, id, `shop-${cell}.example.org`)
  }
  return { a: shops.a, b: shops.b }
}

async function open(admin: Caller, dns: Dns, projectId: number, name: string): Promise<Shop> {
  const at = `/admin/projects/${projectId}`
  await body(200, admin.patch(at, { allow_service_mta: true, reason: 'A customer since 2019' }))
  const domain = { name, mta_provider: 'service' }
  await verify({ dns }, admin, projectId, await body<Domain>(201, admin.post(`${at}/domains`, domain)))
  const key = { mode: 'live', name: 'Web shop', scopes, domain_id: null, allowed_ips: [], expires_at: null }
  const { secret } = await body<{ secret: string }>(
    201,
    admin.post(`${at}/api-keys`, { ...key, is_active: true }),
  )
  return { projectId, secret, from: `Shop <orders@${name}>` }
}

export const mailOf = ({ from }: Shop, to: string) => ({
  ...{ from, to: [to], subject: 'Your order', text: 'It is on its way.' },
})
