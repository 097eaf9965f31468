import assert from 'node:assert/strict'
import { type NewEvent, writeEvents } from '../../core/mail/messages/events.ts'
import { createResolver } from '../../platform/net/dns.ts'
import { createNetGuard } from '../../platform/net/net-guard.ts'
import { createLogger } from '../../platform/telemetry/log.ts'
import { WebhookDispatcher, type WebhookDispatcherDeps } from '../../worker/webhook-dispatcher.ts'
import { fixtures } from '../fixtures/fixtures.ts'
import { type Receiver, startReceiver } from '../peers/webhook-receiver.ts'
import { startApi, type TestApi } from './api.ts'
import { cleanUp } from './cleanup.ts'
import { signedIn } from './client.ts'
import { databaseNow, openDatabase, type TestDatabase } from './database.ts'
import { fanOutAll } from './fan-out.ts'
import { eventually, patienceMs } from './waiting.ts'

/** Endpoints at a real receiver, events for them, and workers that deliver the events. */
export interface WebhookHarness {
  api: TestApi
  receiver: Receiver
  /** A connection with the role that writes mail. */
  mail: WebhookDispatcherDeps['db']
  /** All warnings and errors that the workers have logged. */
  errors: string[]
  makeProject(): Promise<number>
  /** Creates an endpoint with its own path, subscribed to the events that tests write. */
  makeEndpoint(projectId: number, changes?: { url?: string }): Promise<TestEndpoint>
  /** Writes events and fans them out. Returns their ids, in order. */
  publishEvents(projectId: number, count?: number, changes?: Partial<NewEvent>): Promise<string[]>
  /**
   * Starts a webhook worker that stops at the end of the test file. Its requests do not time out on a slow machine,
   * and a retry is due only after `pass`.
   */
  startWorker(changes?: Partial<WebhookDispatcherDeps>): WebhookDispatcher
  attemptsOf(endpoint: TestEndpoint): Promise<TestAttempt[]>
  queueOf(endpoint: TestEndpoint): Promise<TestQueue>
  waitingFor(endpoint: TestEndpoint): Promise<number>
  outboxOf(endpoint: TestEndpoint): Promise<{ topic: string; payload: Record<string, unknown> }[]>
  /** The database's current time. */
  now(): Promise<Date>
  /** Waits until nothing is due for the endpoint. */
  untilQuiet(endpoint: TestEndpoint): Promise<void>
  /** Simulates the passing of time by moving all timestamps of the endpoint back. */
  pass(endpoint: TestEndpoint, interval: string): Promise<void>
}

export interface TestEndpoint {
  id: number
  project_id: number
  path: string
  secret: string
}

export interface TestAttempt {
  event_id: string
  attempt: number
  outcome: string
  status: number | null
  response: string | null
  error: string | null
  latency_ms: number
}

export interface TestQueue {
  failures: number
  is_healthy: boolean
  is_idle: boolean
  is_leased: boolean
  lease: number
  is_due: boolean
  due_at: Date | null
  backoff_until: Date | null
}

/** The backoff after a failure, for workers that a test starts. The test advances the time by this amount. */
export const retryDelay = { ms: 3_600_000, interval: '1 hour' } as const

export async function webhookHarness(database: TestDatabase): Promise<WebhookHarness> {
  const api = await startApi(database)
  const admin = await signedIn(api)
  const made = fixtures(database, admin)
  const receiver = await startReceiver()
  const mail = openDatabase(database, { poolSize: 8 }).as('mail')
  const guard = createNetGuard({
    resolver: createResolver({ servers: [], timeoutMs: 1000, tries: 1 }),
    allowedNetworks: ['127.0.0.0/8'],
    ports: [receiver.port, 443],
    ca: receiver.ca,
  })
  const errors: string[] = []
  const log = createLogger('warn', { write: (line) => void errors.push(line) })
  const of = ({ project_id, id }: TestEndpoint) => [project_id, id]
  const where = 'where shard = postern.shard_of($1) and project_id = $1 and endpoint_id = $2'
  let paths = 0
  let groups = 0

  const queueOf = async (endpoint: TestEndpoint): Promise<TestQueue> => {
    const [row] = await database.query<TestQueue>(
      `select failures, is_healthy, due_at is null as is_idle, leased_until is not null as is_leased, lease::int as lease,
              coalesce(due_at <= postern.now(), false) as is_due, due_at, backoff_until
         from mail.endpoint_queues ${where}`,
      of(endpoint),
    )
    return row ?? assert.fail(`endpoint ${endpoint.id} has no queue`)
  }

  return {
    api,
    receiver,
    mail,
    errors,
    makeProject: async () => (await made.makeProject()).id,
    async makeEndpoint(projectId, { url } = {}) {
      const { resource, secret } = await made.makeEndpoint(projectId, {
        events: ['message.delivered', 'message.bounced'],
      })
      const path = `/hook${++paths}`
      // The API rejects private addresses, but the test's receiver has one.
      await database.query('update control.endpoints set url = $2 where id = $1', [
        resource.id,
        url ?? `${receiver.url}${path}`,
      ])
      return { id: resource.id, project_id: projectId, path, secret }
    },
    async publishEvents(projectId, count = 1, changes = {}) {
      const events = Array.from(
        { length: count },
        (_, no): NewEvent => ({
          ...{ projectId, type: 'message.delivered', messageId: null, recipientNo: null },
          ...changes,
          data: { ...changes.data, no, group: groups },
        }),
      )
      groups++
      await mail.transaction((tx) => writeEvents(tx, events))
      await fanOutAll(mail, database)
      const rows = await database.query<{ id: string }>(
        `select id from mail.events where project_id = $1 and (data->>'group')::int = $2 order by (data->>'no')::int`,
        [projectId, groups - 1],
      )
      return rows.map(({ id }) => id)
    },
    startWorker(changes = {}) {
      const worker = new WebhookDispatcher({
        ...{ db: mail, vault: api.context.vault, guard, userAgent: 'Postern/test', log },
        ...{ requestTimeoutMs: 10 * patienceMs, retryDelayMs: () => retryDelay.ms },
        ...changes,
      })
      worker.start()
      cleanUp(async () => {
        const stopped = worker.stop()
        // Otherwise the worker would wait for responses that the test never sends.
        receiver.disconnect()
        await stopped
      })
      return worker
    },
    attemptsOf: (endpoint) =>
      database.query<TestAttempt>(
        `select event_id, attempt, outcome, status, response, error, latency_ms from mail.delivery_attempts ${where} order by id`,
        of(endpoint),
      ),
    queueOf,
    async waitingFor(endpoint) {
      const [row] = await database.query<{ count: number }>(
        `select count(*)::int as count from mail.deliveries ${where}`,
        of(endpoint),
      )
      return row?.count ?? 0
    },
    outboxOf: ({ project_id, id }) =>
      database.query(
        `select topic, payload from mail.outbox where project_id = $1 and (payload->>'endpoint_id')::bigint = $2 order by id`,
        [project_id, id],
      ),
    now: () => databaseNow(database),
    async untilQuiet(endpoint) {
      await eventually(`nothing is due at endpoint ${endpoint.id}`, async () => {
        const [{ is_woken } = {}] = await database.query<{ is_woken: boolean }>(
          'select exists (select from mail.wakes) or exists (select from mail.fan_outs) as is_woken',
        )
        if (is_woken) return false
        const { is_leased, is_due } = await queueOf(endpoint)
        return !is_leased && !is_due
      })
    },
    async pass(endpoint, interval) {
      await database.query(
        `update mail.endpoint_queues set due_at = due_at - $3::interval, backoff_until = backoff_until - $3::interval,
                leased_until = leased_until - $3::interval, failing_since = failing_since - $3::interval,
                published_at = published_at - $3::interval ${where}`,
        [...of(endpoint), interval],
      )
      await database.query(
        `update mail.deliveries set due_at = due_at - $3::interval, gives_up_at = gives_up_at - $3::interval ${where}`,
        [...of(endpoint), interval],
      )
    },
  }
}

/** Asserts that `at` is `ms` after a time between `before` and `after`, by the database's clock. */
export function assertDated(at: Date | null, ms: number, before: Date, after: Date): void {
  const moment = at?.getTime() ?? Number.NaN
  assert.ok(
    moment >= before.getTime() + ms && moment <= after.getTime() + ms,
    `${at?.toISOString()} is not ${ms} ms after a time between ${before.toISOString()} and ${after.toISOString()}`,
  )
}
