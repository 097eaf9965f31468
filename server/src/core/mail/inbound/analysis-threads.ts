import { isMainThread, Worker, workerData } from 'node:worker_threads'
import type { MailAuthentication, Signers } from '../../../formats/authentication.ts'
import type { IncomingReport } from '../../../formats/incoming-report.ts'
import type { TraceFault } from '../../../formats/trace.ts'
import { PosternError } from '../../../platform/errors.ts'
import type { ResolverOptions } from '../../../platform/net/dns.ts'
import { CpuBudget } from '../../../platform/scheduling/cpu-budget.ts'
import type { Whose } from '../../../platform/scheduling/fair-queue.ts'
import { ThreadPool, TookTooLong } from '../../../platform/scheduling/thread-pool.ts'
import { metrics } from '../../../platform/telemetry/metrics.ts'
import {
  type AnalysisTask,
  type AnalysisTasks,
  type Judged,
  serveAnalysis,
  type ThreadData,
} from './analysis.ts'
import { type Linking, receivedJson } from './received-event.ts'

/** What is asked about a mail that comes in. */
export interface AnalysisRequest extends Omit<AnalysisTasks['authenticate'], 'raw'> {
  raw: Buffer
  /** Null: no endpoint reads it. */
  reading: { links: Linking; readers: number } | null
}

export type Analysis = { fault: TraceFault } | AnalysedMail

export interface AnalysedMail extends Extract<Judged, MailAuthentication> {
  /** What endpoints are told of it, as JSON; null where no endpoint reads it. */
  told: Buffer | null
}

export interface AnalysisThreadsOptions {
  dns: Pick<ResolverOptions, 'servers'>
  limits?: Partial<typeof limits>
}

const limits = {
  judgedWithinMs: 10_000,
  // Nothing that anybody means to be read takes a fifth of it.
  parsedWithinMs: 10_000,
  // So long a mail takes 0.2 s to parse at worst.
  quickLines: 5_000,
  // To evaluate five signatures of it takes 0.1 s at worst.
  quickBytes: 1024 * 1024,
  // Longer than anything above takes: whoever waits and hears nothing of anybody's mail waits for a thread that hangs.
  silentMs: 30_000,
  // Less than senders wait for the answer to their mail (RFC 5321 §4.5.3.2.6: ten minutes).
  waitMs: 40_000,
  // An ordinary mail takes 5 to 20 ms: more than the intake takes from one network in a minute.
  cpuMsPerNetwork: 12_000,
  cpuMsPerAddressee: 30_000,
  // Of a network: dozens of ordinary mails in a few seconds.
  quietCpuMs: 1_200,
}
const role = 'postern examiner'

/**
 * Threads that evaluate and parse what strangers send: mail that comes in, and reports. The main thread only receives it. A
 * mail can be made to take minutes (4 million empty lines took 148 s).
 *
 * Work that waits for the DNS is done by threads that have many jobs at once, and parsing by threads that have one job at a
 * time; large and long mails have threads of their own. A mail that takes too long to parse is ended together with its
 * thread, and taken unparsed. Jobs have their turns by network and by addressee, and each of these has a budget of
 * processor time (platform/scheduling/thread-pool.ts).
 *
 * What judging would take is bounded by what is given to it (formats/authentication.ts); should a thread hang in it all the
 * same, nobody can say of which mail, so all that wait there fail, and are brought again.
 */
export class AnalysisThreads {
  readonly #limits: typeof limits
  readonly #budget: CpuBudget
  readonly #pools: Record<'judge' | 'judgeLarge' | 'parse' | 'parseLong', ThreadPool<AnalysisTask>>

  constructor(options: AnalysisThreadsOptions) {
    this.#limits = { ...limits, ...options.limits }
    const { judgedWithinMs, parsedWithinMs: withinMs, silentMs, waitMs } = this.#limits
    this.#budget = new CpuBudget({
      perNetworkMs: this.#limits.cpuMsPerNetwork,
      perAddresseeMs: this.#limits.cpuMsPerAddressee,
      quietMs: this.#limits.quietCpuMs,
    })
    const data: ThreadData = { servers: options.dns.servers, judgedWithinMs }
    const shared = {
      start: () => new Worker(new URL(import.meta.url), { workerData: { role, ...data } }),
      ...{ waitMs, silentMs, budget: this.#budget },
    }
    this.#pools = {
      judge: new ThreadPool({ ...shared, jobs: 'small', threads: 1, atOnce: 200, atOncePerShare: 50 }),
      judgeLarge: new ThreadPool({ ...shared, jobs: 'any', threads: 1, atOnce: 20, atOncePerShare: 5 }),
      parse: new ThreadPool({ ...shared, jobs: 'small', threads: 1, atOnce: 1, atOncePerShare: 1, withinMs }),
      // Two threads, of which nobody has both: one long mail does not delay those of others.
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

  /** Whether not even a small mail is analysed now, because a network or an addressee has used up its processor time. */
  isSpent(whose: Partial<Whose>): boolean {
    return this.#budget.isSpent(whose, 'small')
  }

  /** Rejects with `rate_limited` where there is no processor time left, or no turn in time. */
  async examine({ reading, ...examination }: AnalysisRequest, whose: Whose): Promise<Analysis> {
    const judged = (await this.#ask('authenticate', examination, whose)) as Judged
    if ('fault' in judged || reading === null) return 'fault' in judged ? judged : { ...judged, told: null }
    const { authentication, results } = judged
    const read = await this.#ask(
      'parse',
      { raw: examination.raw, judgement: { authentication, results }, ...reading },
      whose,
    )
    const told = read
      ? bufferOf(read as Uint8Array)
      : Buffer.from(receivedJson({ authentication, parsed: null }, reading.links, reading.readers))
    return { ...judged, told }
  }

  /** Undefined where there is no such attachment, or it takes too long to find. */
  extract(extraction: AnalysisTasks['extract'], whose: Whose): Promise<Uint8Array | undefined> {
    return this.#ask('extract', extraction, whose) as Promise<Uint8Array | undefined>
  }

  /** Who has signed a mail that is sent to an address for complaints. */
  verify(raw: Buffer, whose: Whose): Promise<Signers> {
    return this.#ask('verify', { raw }, whose) as Promise<Signers>
  }

  /** Undefined where it takes too long. */
  readReport(raw: Buffer, whose: Whose): Promise<IncomingReport | undefined> {
    return this.#ask('report', { raw }, whose) as Promise<IncomingReport | undefined>
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map((pool) => pool.close()))
  }

  async #ask<Work extends keyof AnalysisTasks>(
    work: Work,
    of: AnalysisTasks[Work],
    whose: Whose,
  ): Promise<unknown> {
    try {
      const answer = await this.#poolFor(work, of.raw).run({ work, of } as AnalysisTask, whose)
      metrics.analyses.add({ work, outcome: 'done' })
      return answer
    } catch (error) {
      metrics.analyses.add({ work, outcome: outcomeOf(error) })
      if (error instanceof TookTooLong) return undefined
      throw error
    }
  }

  #poolFor(work: keyof AnalysisTasks, raw: Uint8Array): ThreadPool<AnalysisTask> {
    if (work === 'authenticate' || work === 'verify') {
      return raw.length > this.#limits.quickBytes ? this.#pools.judgeLarge : this.#pools.judge
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

/** Between threads a Buffer becomes what it is underneath. */
const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

if (!isMainThread && workerData?.role === role) serveAnalysis(workerData as ThreadData)
