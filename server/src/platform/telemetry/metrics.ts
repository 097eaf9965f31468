import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { dbRoles } from '../db/roles.ts'
import { errorCodes } from '../errors.ts'
import { type QueueName, queues } from '../jobs/queues.ts'

/**
 * Everything that is counted, in one table. It is the process's, as its memory is: nothing decides by it, so nobody has
 * to hand it on.
 *
 * Labels are closed lists, and the types hold callers to them. No project, domain, endpoint, address or path is ever
 * one: the number of series depends on what the program can do, and not on who uses it. The one label without a list
 * is `operation`, which only the tables of routes give.
 */
export const registry = new Registry()

type Lists = Record<string, readonly string[]>
type Values<L extends Lists> = { [Name in keyof L]: L[Name][number] }

/** A counter whose every series is there from the start: a rate needs a zero to rise from. */
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

  note(labels: Values<L>, ms: number): void {
    this.#histogram.observe(labels, ms / 1000)
  }
}

/** A value as it is when somebody looks; undefined where nobody knows, and then there is no series. */
class Level<const L extends Lists> {
  readonly #gauge: Gauge

  constructor(name: string, help: string, lists: L) {
    this.#gauge = new Gauge({ name, help, labelNames: Object.keys(lists), registers: [registry] })
    // Without labels there would be a zero from the start, in processes that know nothing of it, too.
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

const ways = ['http', 'batch', 'smtp', 'forward'] as const
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
/** Those in the tables of routes. */
const operations: readonly string[] = []

export const metrics = {
  httpRequests: new Counts(
    'postern_http_requests_total',
    'Requests answered, by operation and class of status.',
    {
      operation: operations,
      status: ['1xx', '2xx', '3xx', '4xx', '5xx'],
    },
  ),
  httpSeconds: new Durations(
    'postern_http_request_duration_seconds',
    'From the first octet of a request to the last of its answer.',
    { operation: operations },
    [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
  ),
  httpProblems: new Counts('postern_http_problems_total', 'Requests that failed, by error code.', {
    code: errorCodes,
  }),
  mailsAccepted: new Counts('postern_mails_accepted_total', 'Messages accepted, by the way they came.', {
    way: ways,
  }),
  mailsRefused: new Counts('postern_mails_refused_total', 'Messages refused at acceptance, by error code.', {
    way: ways,
    code: errorCodes,
  }),
  mailEvents: new Counts(
    'postern_events_total',
    'Events written, by type: what became of mail, and what came in.',
    {
      type: events,
    },
  ),
  attempts: new Counts('postern_dispatch_attempts_total', 'Hand-overs tried, by how they ended.', {
    provider: providers,
    outcome: ['sent', 'deferred', 'refused', 'unreachable', 'unknown'],
  }),
  handoverSeconds: new Durations(
    'postern_handover_duration_seconds',
    'From the first word to a provider to its reply.',
    { provider: providers },
    [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120],
  ),
  providerResting: new Level(
    'postern_provider_resting',
    '1 while nobody of this provider takes mail and it is left alone.',
    { provider: providers },
  ),
  reports: new Counts('postern_reports_total', 'Reports about mail that was handed over, by what followed.', {
    kind: ['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained', 'none'],
    outcome: [
      ...['applied', 'repeated', 'unknown', 'overtaken', 'ignored', 'refused'],
      ...['coalesced', 'limited', 'expired'],
    ] as const,
  }),
  webhookAttempts: new Counts('postern_webhook_attempts_total', 'Requests to endpoints, by how they ended.', {
    outcome: ['delivered', 'failed', 'given_up', 'gone'],
  }),
  webhookSeconds: new Durations(
    'postern_webhook_duration_seconds',
    'How long endpoints take to answer.',
    {},
    [0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15],
  ),
  inbound: new Counts(
    'postern_inbound_mails_total',
    "Mail for customers' domains, by what was done with it.",
    {
      outcome: ['endpoint', 'forward', 'drop', 'refused', 'failed'],
    },
  ),
  forwards: new Counts(
    'postern_forwards_total',
    'Mail for routes that forward: forwarded, or refused because the target has not confirmed, the mail fails DMARC, DMARC could not be evaluated, or the limit of the day is reached.',
    {
      outcome: ['forwarded', 'unconfirmed', 'dmarc', 'unknown', 'limit'],
    },
  ),
  analyses: new Counts(
    'postern_analysis_jobs_total',
    'Jobs of the threads that analyse inbound mail and reports, by how they ended.',
    {
      work: ['authenticate', 'parse', 'extract', 'verify', 'report'],
      outcome: ['done', 'too_long', 'refused', 'failed'],
    },
  ),
  smtpConnections: new Counts('postern_smtp_connections_total', 'Connections to the intake.', {
    listener: listeners,
  }),
  smtpOpen: new Level('postern_smtp_connections', 'Connections to the intake that are open.', {
    listener: listeners,
  }),
  smtpRefusals: new Counts(
    'postern_smtp_refusals_total',
    'Replies of the intake that refuse, by class of code.',
    {
      listener: listeners,
      status: ['4xx', '5xx'],
    },
  ),
  jobs: new Counts('postern_jobs_total', 'Jobs run by this worker.', {
    queue: queueNames,
    outcome: ['done', 'failed'],
  }),
  jobLastDone: new Level(
    'postern_job_last_success_timestamp_seconds',
    'When this worker last ended a job of the queue well; its start, before the first.',
    { queue: queueNames },
  ),
  domainsUnanswered: new Counts(
    'postern_domains_unanswered_total',
    'Verified domains whose DNS has given no answer for so many days; after 14 they are no longer verified.',
    { days: ['3', '10', '14'] },
  ),
  choreFailures: new Counts('postern_chore_failures_total', 'Parts of the minutely chores that failed.', {}),
  poolConnections: new Level('postern_database_connections', 'Connections of a pool.', {
    role: dbRoles,
    state: ['idle', 'busy'],
  }),
  poolWaiting: new Level('postern_database_waiting', 'Requests that wait for a connection of a pool.', {
    role: dbRoles,
  }),
  poolSize: new Level('postern_database_pool_size', 'Connections that a pool may have.', { role: dbRoles }),
  certificateEnds: new Level(
    'postern_intake_certificate_expiry_timestamp_seconds',
    'When the certificate of the intake ends.',
    {},
  ),

  controlCopyAge: new Level(
    'postern_control_copy_age_seconds',
    'Age of the copy of control in the cell of this process; at control, of the oldest copy in any cell.',
    {},
  ),

  // How things stand in the database (core/gauges): of workers alone, looked at every ten seconds at most.
  standingKnown: new Level('postern_standing_known', '1 if the last look at the database went well.', {}),
  standingSeconds: new Level('postern_standing_duration_seconds', 'How long that look took.', {}),
  queueDepth: new Level('postern_queue_mails', 'Mails to be sent, by state; counted up to 10,000 each.', {
    state: ['ready', 'leased', 'deferred', 'scheduled', 'awaiting'],
  }),
  queueAge: new Level(
    'postern_queue_oldest_ready_seconds',
    'How long the oldest mail has been ready that may be sent; 0 if there is none.',
    { provider: providers },
  ),
  queueOverdue: new Level(
    'postern_queue_overdue_seconds',
    'For how long the first mail that was put off or scheduled has been due.',
    {},
  ),
  leaseAge: new Level('postern_lease_oldest_seconds', 'How old the oldest lease of a mail is.', {}),
  webhookLag: new Level(
    'postern_webhook_lag_seconds',
    'For how long the first endpoint that is due has waited.',
    {
      standing: ['proven', 'failing'],
    },
  ),
  webhooksParked: new Level(
    'postern_webhook_endpoints_parked',
    'Endpoints left alone because they failed, up to 10,000.',
    {},
  ),
  webhookWakes: new Level(
    'postern_webhook_wakes',
    'Events waiting for fan-out and wake-ups waiting for a worker, up to 20,000.',
    {},
  ),
  resultsOverdue: new Level(
    'postern_results_overdue_seconds',
    'For how long the first result of an attempt has waited for its events, beyond the ten seconds it may take.',
    {},
  ),
  outboxLag: new Level(
    'postern_outbox_lag_seconds',
    'Age of the oldest word that one schema left for the other.',
    {
      told: ['control', 'mail'],
    },
  ),
  checkpointLag: new Level(
    'postern_audit_uncovered_seconds',
    'Age of the first audit row that no checkpoint covers; 0 if there is none.',
    {},
  ),
}

type Look = () => void | Promise<void>

const looks = new Set<Look>()

/** Called before metrics are read, to set what is known only by looking. It must not reject. How to end it. */
export function onScrape(look: Look): () => void {
  looks.add(look)
  return () => void looks.delete(look)
}

let hasDefaults = false

/** For a process that shows its metrics: event loop, memory, file descriptors and so on, from now on. */
export function watchProcess(version: string): void {
  if (hasDefaults) return
  hasDefaults = true
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'postern_build_info',
    help: 'Always 1; what runs is in the labels.',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version, node: process.version }, 1)
}

export async function exposition(): Promise<string> {
  await Promise.all([...looks].map((look) => look()))
  return registry.metrics()
}

export const statusClass = (status: number): '1xx' | '2xx' | '3xx' | '4xx' | '5xx' =>
  (['1xx', '2xx', '3xx', '4xx'] as const)[Math.floor(status / 100) - 1] ?? '5xx'
