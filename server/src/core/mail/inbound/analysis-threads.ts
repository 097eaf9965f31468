import { isMainThread, Worker, workerData } from 'node:worker_threads'
import type { MailAuthentication, Signers } from '../../../formats/authentication.ts'
import type { IncomingReport } from '../../../formats/incoming-report.ts'
import type { TraceFault } from '../../../formats/trace.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { ResolverOptions } from '../../../platform/net/dns.ts'
import { CpuBudget } from '../../../platform/scheduling/cpu-budget.ts'
import type { Whose } from '../../../platform/scheduling/fair-queue.ts'
import { ThreadPool, TookTooLong } from '../../../platform/scheduling/thread-pool.ts'
import { Counter } from '../../../platform/telemetry/metrics.ts'
import type { AnalysisTask, AnalysisTasks, AuthenticatedMail, ThreadData } from './analysis.ts'
import { type Linking, receivedJson } from './received-event.ts'

/** The analysis to perform for an inbound message. */
export interface AnalysisRequest extends Omit<AnalysisTasks['authenticate'], 'raw'> {
  raw: Buffer
  /** Null if no endpoint receives the message. */
  event: { links: Linking; readers: number } | null
}

export type Analysis = { fault: TraceFault } | AnalysedMail

export interface AnalysedMail extends Extract<AuthenticatedMail, MailAuthentication> {
  /** The data of the event that endpoints receive, as JSON; null if no endpoint receives the message. */
  eventData: Buffer | null
}

export interface AnalysisThreadsOptions {
  dns: Pick<ResolverOptions, 'servers'>
  limits?: Partial<typeof limits>
}

const analysisJobs = new Counter(
  'postern_analysis_jobs_total',
  'Jobs of the threads that analyse inbound mail and reports, by kind of work and outcome.',
  {
    work: ['authenticate', 'parse', 'extract', 'verify', 'report'],
    outcome: ['done', 'too_long', 'refused', 'failed'],
  },
)

const limits = {
  authTimeoutMs: 10_000,
  // Ordinary mail takes less than a fifth of this.
  parseTimeoutMs: 10_000,
  // A message with this many lines takes at most 0.2 s to parse.
  quickLines: 5_000,
  // Verifying five signatures over this size takes at most 0.1 s.
  quickBytes: 1024 * 1024,
  // Longer than any limit above: a thread that completes no job for this long is considered hung.
  silentMs: 30_000,
  // Shorter than the time clients wait for the reply to a message (RFC 5321 §4.5.3.2.6: ten minutes).
  waitMs: 40_000,
  // An ordinary message takes 5 to 20 ms, so this allows more messages than the intake accepts from one
  // network in a minute.
  cpuMsPerNetwork: 12_000,
  cpuMsPerAddressee: 30_000,
  // Per network: enough for dozens of ordinary messages in a few seconds.
  quietCpuMs: 1_200,
}
const role = 'postern mail analysis'

/**
 * Worker threads that authenticate and parse untrusted input: inbound mail and reports. The main thread only
 * receives the input. A message can be crafted to take minutes to process (4 million empty lines took 148 s).
 *
 * Authentication waits for DNS, so its threads run many jobs concurrently. Parsing threads run one job at a
 * time. Large messages and messages with many lines have separate threads. If a message takes too long to
 * parse, its thread is terminated and the message is accepted unparsed. Jobs are scheduled round-robin by
 * network and by addressee, each with a CPU time budget (platform/scheduling/thread-pool.ts).
 *
 * Limits on the input bound the cost of authentication (formats/authentication.ts). If a thread hangs anyway,
 * the responsible message is unknown, so all of that thread's jobs fail and their clients retry.
 */
export class AnalysisThreads {
  readonly #limits: typeof limits
  readonly #budget: CpuBudget
  readonly #pools: Record<
    'authenticate' | 'authenticateLarge' | 'parse' | 'parseLong',
    ThreadPool<AnalysisTask>
  >

  constructor(options: AnalysisThreadsOptions) {
    this.#limits = { ...limits, ...options.limits }
    const { authTimeoutMs, parseTimeoutMs: withinMs, silentMs, waitMs } = this.#limits
    this.#budget = new CpuBudget({
      perNetworkMs: this.#limits.cpuMsPerNetwork,
      perAddresseeMs: this.#limits.cpuMsPerAddressee,
      quietMs: this.#limits.quietCpuMs,
    })
    const data: ThreadData = { servers: options.dns.servers, authTimeoutMs }
    const shared = {
      start: () => new Worker(new URL(import.meta.url), { workerData: { role, ...data } }),
      ...{ waitMs, silentMs, budget: this.#budget },
    }
    this.#pools = {
      authenticate: new ThreadPool({ ...shared, jobs: 'small', threads: 1, atOnce: 200, atOncePerShare: 50 }),
      authenticateLarge: new ThreadPool({
        ...shared,
        jobs: 'any',
        threads: 1,
        atOnce: 20,
        atOncePerShare: 5,
      }),
      parse: new ThreadPool({ ...shared, jobs: 'small', threads: 1, atOnce: 1, atOncePerShare: 1, withinMs }),
      // Two threads. A network or an addressee can use only one of them, so a message with many lines does
      // not delay other senders' messages.
      parseLong: new ThreadPool({
        ...shared,
        jobs: 'any',
        threads: 2,
        atOnce: 1,
        atOncePerShare: 1,
        withinMs,
      }),
    }
  }

  /** Whether a network or an addressee has used up its CPU time budget, even for small messages. */
  isSpent(senderKey: Partial<Whose>): boolean {
    return this.#budget.isSpent(senderKey, 'small')
  }

  /** Rejects with `rate_limited` if the CPU time budget is used up or the job waited too long. */
  async analyse({ event, ...request }: AnalysisRequest, senderKey: Whose): Promise<Analysis> {
    const mail = (await this.#run('authenticate', request, senderKey)) as AuthenticatedMail
    if ('fault' in mail) return mail
    if (event === null) return { ...mail, eventData: null }
    const { authentication, results } = mail
    const json = await this.#run(
      'parse',
      { raw: request.raw, authenticated: { authentication, results }, ...event },
      senderKey,
    )
    const eventData = json
      ? bufferOf(json as Uint8Array)
      : Buffer.from(receivedJson({ authentication, parsed: null }, event.links, event.readers))
    return { ...mail, eventData }
  }

  /** Undefined if the attachment does not exist or takes too long to find. */
  extract(extraction: AnalysisTasks['extract'], senderKey: Whose): Promise<Uint8Array | undefined> {
    return this.#run('extract', extraction, senderKey) as Promise<Uint8Array | undefined>
  }

  /** Verifies the DKIM signatures of a message sent to a complaint address. */
  verify(raw: Buffer, senderKey: Whose): Promise<Signers> {
    return this.#run('verify', { raw }, senderKey) as Promise<Signers>
  }

  /** Undefined if parsing takes too long. */
  readReport(raw: Buffer, senderKey: Whose): Promise<IncomingReport | undefined> {
    return this.#run('report', { raw }, senderKey) as Promise<IncomingReport | undefined>
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map((pool) => pool.close()))
  }

  async #run<Work extends keyof AnalysisTasks>(
    work: Work,
    of: AnalysisTasks[Work],
    senderKey: Whose,
  ): Promise<unknown> {
    try {
      const result = await this.#poolFor(work, of.raw).run({ work, of } as AnalysisTask, senderKey)
      analysisJobs.add({ work, outcome: 'done' })
      return result
    } catch (error) {
      analysisJobs.add({ work, outcome: outcomeOf(error) })
      if (error instanceof TookTooLong) return undefined
      throw error
    }
  }

  #poolFor(work: keyof AnalysisTasks, raw: Uint8Array): ThreadPool<AnalysisTask> {
    if (work === 'authenticate' || work === 'verify') {
      return raw.length > this.#limits.quickBytes ? this.#pools.authenticateLarge : this.#pools.authenticate
    }
    // Only the beginning of a report is parsed (formats/multipart-report.ts).
    if (work === 'report' || !isLong(raw, this.#limits.quickLines)) return this.#pools.parse
    return this.#pools.parseLong
  }
}

function outcomeOf(error: unknown): 'too_long' | 'refused' | 'failed' {
  if (error instanceof TookTooLong) return 'too_long'
  return error instanceof PosternError ? 'refused' : 'failed'
}

function isLong(raw: Uint8Array, lines: number): boolean {
  let count = 0
  for (let at = raw.indexOf(0x0a); at >= 0; at = raw.indexOf(0x0a, at + 1)) if (++count > lines) return true
  return false
}

/** A Buffer arrives from another thread as a plain Uint8Array. */
const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

if (!isMainThread && workerData?.role === role) {
  // Loaded only in the threads: the parsers are a quarter of the program.
  const { serveAnalysis } = await import('./analysis.ts')
  serveAnalysis(workerData as ThreadData)
}
