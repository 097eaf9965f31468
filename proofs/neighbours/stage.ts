import path from 'node:path'
import { forgetWebhooks } from '../../bench/endpoints.ts'
import { type Part, type PartOptions, type Postern, startPostern } from '../../bench/postern.ts'
import { forgetMail } from '../../bench/queue.ts'
import { type Receiver, startReceiver } from '../../bench/receiver.ts'
import { creator, keyForAll, makeSenders } from '../../bench/senders.ts'
import { type Sink, startSink } from '../../bench/sink.ts'
import { buildServer, builtProgram, isServerStale } from '../../scripts/server-build.ts'
import { steadyPort } from '../../server/src/testing/peers/steady-port.ts'

/** The caps on endpoints, routes and projects per owner, low enough to be reached with a few requests. */
export const capValue = 20

export interface Tenant {
  projectId: number
  domainId: number
  domain: string
  secret: string
}

/** Shared by all attacks: PostgreSQL, the API, a mail sink and a webhook receiver. */
export interface Stage {
  postern: Postern
  sink: Sink
  receiver: Receiver
  /** The timeout for expected results. */
  patienceMs: number
  query(text: string, values?: unknown[]): Promise<unknown[]>
  count(from: string, ...values: unknown[]): Promise<number>
  sum(what: string, from: string, ...values: unknown[]): Promise<number>
  /** Restarts the API with exactly these options. */
  useApi(options: PartOptions | undefined): Promise<void>
  isApiAlive(): boolean
  /** The ports for outside senders, if everything runs in one process. */
  strangers: { bouncePort: number; inboundPort: number; returnPathHost: string }
  /** With `isTogether`, replaces the API with one process that runs the API, the worker and the intake. */
  startWorker(isTogether?: boolean): Promise<Part>
  /**
   * The longest event-loop delay of that process in ms since the last call, as measured by the process. NaN if there is
   * no such process.
   */
  longestTaskMs(): Promise<number>
  /** Removes all mail and webhooks, while no worker runs. */
  clear(): Promise<void>
  stop(): Promise<void>
}

export async function startStage(patienceMs: number): Promise<Stage> {
  if (isServerStale()) await buildServer()
  const environment: Record<string, string> = {
    POSTERN_HTTP_PORT: String(await steadyPort()),
    POSTERN_MAX_ENDPOINTS: String(capValue),
    POSTERN_MAX_ROUTES: String(capValue),
    POSTERN_MAX_PROJECTS_PER_OWNER: String(capValue),
    // The first plan created here.
    POSTERN_CUSTOMER_PLAN_ID: '1',
  }
  const postern = await startPostern({ environment, program: builtProgram })
  const sink = await startSink(path.join(postern.directory, 'received'), 20)
  const receiver = await startReceiver(postern.directory)
  const worker = {
    POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${sink.port}`,
    POSTERN_WEBHOOK_PORTS: String(receiver.port),
    POSTERN_PRIVATE_NETWORKS: '127.0.0.1',
    POSTERN_WEBHOOK_CA_FILE: receiver.caFile,
  }
  const strangers = {
    ...{ bouncePort: await steadyPort(), inboundPort: await steadyPort() },
    returnPathHost: 'bounces.operator.test',
  }
  const metricsPort = await steadyPort()
  const together = {
    ...worker,
    POSTERN_RETURN_PATH_HOST: strangers.returnPathHost,
    POSTERN_BOUNCE_PORT: String(strangers.bouncePort),
    POSTERN_INBOUND_PORT: String(strangers.inboundPort),
    POSTERN_METRICS_PORT: String(metricsPort),
    // The default byte quota would end the attack too early.
    POSTERN_MAX_INBOUND_BYTES_PER_DAY: String(2 ** 40),
    // No DNS server, so lookups for SPF and DKIM are not measured.
    POSTERN_DNS_SERVERS: '127.0.0.1:1',
  }
  const { superuser } = postern
  let api = { part: postern.api, options: undefined as PartOptions | undefined }
  const sum: Stage['sum'] = async (what, from, ...values) => {
    const { rows } = await superuser.query(
      `select coalesce(sum(${what}), 0)::float8 as sum from ${from}`,
      values,
    )
    return rows[0]?.sum ?? 0
  }
  return {
    ...{ postern, sink, receiver, patienceMs, sum, strangers },
    query: async (text, values) => (await superuser.query(text, values)).rows,
    count: (from, ...values) => sum('1', from, ...values),
    async useApi(options) {
      if (options === api.options) return
      await api.part.stop()
      api = { part: await postern.start('api', options), options }
    },
    isApiAlive: () => isAlive(api.part.pid),
    async startWorker(isTogether = false) {
      if (!isTogether) return postern.start('worker', { environment: worker })
      await api.part.stop()
      const all = await postern.start('all', { environment: together })
      const stop = async (): Promise<void> => {
        await all.stop()
        api = { ...api, part: await postern.start('api', api.options) }
      }
      return { ...all, stop }
    },
    async longestTaskMs() {
      const answer = await fetch(`http://127.0.0.1:${metricsPort}/metrics`).catch(() => undefined)
      const [, seconds] = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec((await answer?.text()) ?? '') ?? []
      return seconds === undefined ? Number.NaN : Number(seconds) * 1000
    },
    async clear() {
      await superuser.query('truncate mail.fan_outs, mail.attempt_results, mail.inbound, mail.inbound_bodies')
      await forgetWebhooks(postern)
      await forgetMail(postern)
    },
    async stop() {
      sink.stop()
      receiver.stop()
      await postern.stop()
    },
  }
}

/** Each tenant has a key with all scopes. */
export async function makeTenants({ postern }: Stage, count: number): Promise<Tenant[]> {
  const senders = await makeSenders(postern, count)
  const create = await creator(postern)
  const tenants: Tenant[] = []
  for (const { projectId, domain } of senders) {
    const key = await create<{ secret: string }>(`/projects/${projectId}/api-keys`, { ...keyForAll, scopes })
    const { rows } = await postern.superuser.query('select id from control.domains where project_id = $1', [
      projectId,
    ])
    tenants.push({ projectId, domain, domainId: Number(rows[0]?.id), secret: key.secret })
  }
  return tenants
}

const scopes = [
  ...['messages:send', 'messages:read', 'domains:read', 'domains:write', 'endpoints:write'],
  ...['routing:write', 'suppressions:write'],
]

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
