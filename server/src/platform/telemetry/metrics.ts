import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { dbRoles } from '../db/roles.ts'
import { errorCodes } from '../errors.ts'
import { type QueueName, queues } from '../jobs/queues.ts'

/**
 * Every metric of Postern, in one table. It is global to the process: no decision depends on it, so it is not passed
 * around.
 *
 * The values of a label are a closed list, enforced by types. No project, domain, endpoint, address or path is ever a
 * label: the number of series depends on the program, not on its customers. The only label without a list is
 * `operation`, whose values come from the tables of routes.
 */
export const registry = new Registry()

type Lists = Record<string, readonly string[]>
type Values<L extends Lists> = { [Name in keyof L]: L[Name][number] }

/** A counter whose series all exist from the start: a rate needs an initial zero. */
class Counts<const L extends Lists> {
  readonly #counter: Counter

  constructor(name: string, help: string, lists: L) {
    this.#counter = new Counter({ name, help, labelNames: Object.keys(lists), registers: [registry] })
    for (const labels of combinations(lists)) this.#counter.inc(labels, 0)
  }

  add(labels: Values<L>, by = 1): void {
    this.#counter.inc(labels, by)
  }
}

class Durations<const L extends Lists> {
  readonly #histogram: Histogram

  constructor(name: string, help: string, lists: L, buckets: number[]) {
    const labelNames = Object.keys(lists)
    this.#histogram = new Histogram({ name, help, labelNames, buckets, registers: [registry] })
  }

  observe(labels: Values<L>, ms: number): void {
    this.#histogram.observe(labels, ms / 1000)
  }
}

/** A gauge. An undefined value removes the series. */
class Level<const L extends Lists> {
  readonly #gauge: Gauge

  constructor(name: string, help: string, lists: L) {
    this.#gauge = new Gauge({ name, help, labelNames: Object.keys(lists), registers: [registry] })
    // Without labels prom-client exports an initial zero, also in processes that never set the gauge.
    this.#gauge.remove({})
  }

  set(labels: Values<L>, value: number | undefined): void {
    if (value === undefined) this.#gauge.remove(labels)
    else this.#gauge.set(labels, value)
  }

  add(labels: Values<L>, by: number): void {
    this.#gauge.inc(labels, by)
  }
}

function combinations(lists: Lists): Record<string, string>[] {
  return Object.entries(lists).reduce<Record<string, string>[]>(
    (known, [name, values]) => known.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  )
}

const channels = ['http', 'batch', 'smtp', 'forward'] as const
const providers = ['service', 'ses', 'none'] as const
const listeners = ['bounces', 'submission', 'submissions', 'inbound'] as const
const events = [
  'message.accepted',
  'message.sent',
  'message.delivered',
  'message.deferred',
  'message.bounced',
  'message.failed',
  'message.complained',
  'message.suppressed',
  'inbound.received',
  'domain.verified',
  'domain.failed',
  'endpoint.disabled',
  'endpoint.test',
  'project.locked',
  'project.unlocked',
] as const
const queueNames = Object.keys(queues) as QueueName[]
/** Open: the operation ids of the tables of routes. */
const operations: readonly string[] = []

export const metrics = {
  httpRequests: new Counts('postern_http_requests_total', 'HTTP requests, by operation and status class.', {
    operation: operations,
    status: ['1xx', '2xx', '3xx', '4xx', '5xx'],
  }),
  httpSeconds: new Durations(
    'postern_http_request_duration_seconds',
    'Time from the first octet of a request to the last octet of its response.',
    { operation: operations },
    [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
  ),
  httpProblems: new Counts('postern_http_problems_total', 'Failed HTTP requests, by error code.', {
    code: errorCodes,
  }),
  mailsAccepted: new Counts('postern_mails_accepted_total', 'Messages accepted, by channel.', {
    channel: channels,
  }),
  mailsRefused: new Counts('postern_mails_refused_total', 'Messages refused, by channel and error code.', {
    channel: channels,
    code: errorCodes,
  }),
  mailEvents: new Counts('postern_events_total', 'Events written, by type.', {
    type: events,
  }),
  attempts: new Counts('postern_dispatch_attempts_total', 'Hand-over attempts, by provider and outcome.', {
    provider: providers,
    outcome: ['sent', 'deferred', 'refused', 'unreachable', 'unknown'],
  }),
  handoverSeconds: new Durations(
    'postern_handover_duration_seconds',
    'Time from the start of a hand-over to the final reply of the provider.',
    { provider: providers },
    [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120],
  ),
  providerUnavailable: new Level(
    'postern_provider_unavailable',
    '1 while no host of the provider accepts mail and the worker backs off.',
    { provider: providers },
  ),
  reports: new Counts('postern_reports_total', 'Delivery reports, by kind and outcome.', {
    kind: ['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained', 'none'],
    outcome: [
      ...['applied', 'repeated', 'unknown', 'overtaken', 'ignored', 'refused'],
      ...['coalesced', 'limited', 'expired'],
    ] as const,
  }),
  webhookAttempts: new Counts('postern_webhook_attempts_total', 'Webhook requests, by outcome.', {
    outcome: ['delivered', 'failed', 'given_up', 'gone'],
  }),
  webhookSeconds: new Durations(
    'postern_webhook_duration_seconds',
    'Response time of endpoints.',
    {},
    [0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15],
  ),
  inbound: new Counts('postern_inbound_mails_total', 'Inbound messages, by outcome.', {
    outcome: ['endpoint', 'forward', 'drop', 'refused', 'failed'],
  }),
  forwards: new Counts(
    'postern_forwards_total',
    'Inbound messages for forwarding routes: forwarded, or refused because the target is not confirmed, DMARC failed, DMARC could not be evaluated, or the daily limit is reached.',
    {
      outcome: ['forwarded', 'unconfirmed', 'dmarc', 'unknown', 'limit'],
    },
  ),
  analyses: new Counts(
    'postern_analysis_jobs_total',
    'Jobs of the threads that analyse inbound mail and reports, by outcome.',
    {
      work: ['authenticate', 'parse', 'extract', 'verify', 'report'],
      outcome: ['done', 'too_long', 'refused', 'failed'],
    },
  ),
  smtpConnections: new Counts('postern_smtp_connections_total', 'Connections to the intake, by listener.', {
    listener: listeners,
  }),
  smtpOpen: new Level('postern_smtp_connections', 'Open connections to the intake, by listener.', {
    listener: listeners,
  }),
  smtpRefusals: new Counts(
    'postern_smtp_refusals_total',
    'Negative SMTP replies of the intake, by status class.',
    {
      listener: listeners,
      status: ['4xx', '5xx'],
    },
  ),
  jobs: new Counts('postern_jobs_total', 'Jobs run by this worker, by outcome.', {
    queue: queueNames,
    outcome: ['done', 'failed'],
  }),
  jobLastDone: new Level(
    'postern_job_last_success_timestamp_seconds',
    'Time of the last successful job of the queue in this worker; before the first, the start of the worker.',
    { queue: queueNames },
  ),
  domainsUnanswered: new Counts(
    'postern_domains_unanswered_total',
    'Verified domains whose DNS lookups have failed for that many days; after 14 days they are no longer verified.',
    { days: ['3', '10', '14'] },
  ),
  choreFailures: new Counts('postern_chore_failures_total', 'Failed parts of the minutely chores.', {}),
  poolConnections: new Level('postern_database_connections', 'Database connections of a pool.', {
    role: dbRoles,
    state: ['idle', 'busy'],
  }),
  poolWaiting: new Level('postern_database_waiting', 'Requests waiting for a connection of a pool.', {
    role: dbRoles,
  }),
  poolSize: new Level('postern_database_pool_size', 'Maximum connections of a pool.', { role: dbRoles }),
  certificateExpiry: new Level(
    'postern_intake_certificate_expiry_timestamp_seconds',
    'Expiry time of the TLS certificate of the intake.',
    {},
  ),

  controlReplicaAge: new Level(
    'postern_control_replica_age_seconds',
    'Age of the control replica in the cell of this process; at control, of the oldest replica in any cell.',
    {},
  ),

  // Read from the database (core/gauges) by workers only, at most every ten seconds.
  queueMetricsUp: new Level(
    'postern_queue_metrics_up',
    '1 if the last read of the queue metrics from the database succeeded.',
    {},
  ),
  queueMetricsSeconds: new Level(
    'postern_queue_metrics_duration_seconds',
    'Duration of the last read of the queue metrics.',
    {},
  ),
  queueDepth: new Level('postern_queue_mails', 'Queued messages, by state; counted up to 10,000 each.', {
    state: ['ready', 'leased', 'deferred', 'scheduled', 'awaiting'],
  }),
  queueAge: new Level(
    'postern_queue_oldest_ready_seconds',
    'Age of the oldest message that is ready and allowed to be sent; 0 if there is none.',
    { provider: providers },
  ),
  queueOverdue: new Level(
    'postern_queue_overdue_seconds',
    'How long the oldest deferred or scheduled message has been overdue.',
    {},
  ),
  leaseAge: new Level('postern_lease_oldest_seconds', 'Age of the oldest lease of a message.', {}),
  webhookLag: new Level(
    'postern_webhook_lag_seconds',
    'How long the oldest due webhook delivery has been waiting, by health of its endpoint.',
    {
      health: ['healthy', 'failing'],
    },
  ),
  webhooksParked: new Level(
    'postern_webhook_endpoints_parked',
    'Failing endpoints that wait for their next attempt, up to 10,000.',
    {},
  ),
  webhookWakes: new Level(
    'postern_webhook_wakes',
    'Events waiting for fan-out and wake-ups waiting for a worker, up to 20,000.',
    {},
  ),
  resultsOverdue: new Level(
    'postern_results_overdue_seconds',
    'How long the oldest attempt result has been waiting for its events, beyond the allowed ten seconds.',
    {},
  ),
  outboxLag: new Level(
    'postern_outbox_lag_seconds',
    'Age of the oldest outbox message, by the side it is relayed to.',
    {
      target: ['control', 'mail'],
    },
  ),
  checkpointLag: new Level(
    'postern_audit_uncovered_seconds',
    'Age of the oldest audit entry without a checkpoint; 0 if there is none.',
    {},
  ),
}

type Collect = () => void | Promise<void>

const collectors = new Set<Collect>()

/** Calls a function before each scrape, to set gauges. It must not reject. Returns how to remove it. */
export function onScrape(collect: Collect): () => void {
  collectors.add(collect)
  return () => void collectors.delete(collect)
}

let hasDefaults = false

/** Adds the metrics of the process: event loop, memory, file descriptors and so on. */
export function watchProcess(version: string): void {
  if (hasDefaults) return
  hasDefaults = true
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'postern_build_info',
    help: 'Always 1; the labels contain the version.',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version, node: process.version }, 1)
}

export async function exposition(): Promise<string> {
  await Promise.all([...collectors].map((collect) => collect()))
  return registry.metrics()
}

export const statusClass = (status: number): '1xx' | '2xx' | '3xx' | '4xx' | '5xx' =>
  (['1xx', '2xx', '3xx', '4xx'] as const)[Math.floor(status / 100) - 1] ?? '5xx'
