import { globSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Part } from '../bench/postern.ts'
import { Chance } from './random.ts'
import { countsOnlyOption, type FaultReport, prove, type Stage, say, seedOf, waitMs } from './run.ts'

/**
 * `npm run prove:clock`: workers, an API and an intake whose clocks (libfaketime) are up to 20 minutes apart and jump
 * under load. No process is killed, so no message may arrive twice. proofs/README.md lists the criteria.
 */
const { values: options } = parseArgs({
  options: {
    seed: { type: 'string' },
    seconds: { type: 'string', default: '180' },
    workers: { type: 'string', default: '3' },
    programs: { type: 'string', default: '4' },
    'pause-ms': { type: 'string', default: '200' },
    ...countsOnlyOption,
  },
})
const seed = seedOf(options.seed)
const isCountsOnly = options['counts-only']
const mostSeconds = 600
const pauseMs = { least: 500, most: 3000 }
/** The allowed difference between a process's clock and the run's clock on a busy machine. */
const blurMs = 30_000

const [library] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')
if (library === undefined)
  throw new Error('libfaketime is not installed. On Debian: apt-get install faketime')
const directory = await mkdtemp(path.join(tmpdir(), 'postern-clocks-'))
const chance = new Chance(seed)

/** A clock whose offset is read from a file. */
class Clock {
  readonly name: string
  readonly file: string
  offsetSeconds = 0

  constructor(name: string) {
    this.name = name
    this.file = path.join(directory, name)
  }

  /** Timers use the monotonic clock, which does not jump. */
  get environment(): Record<string, string> {
    return {
      LD_PRELOAD: library ?? '',
      FAKETIME_TIMESTAMP_FILE: this.file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
  }

  async set(offsetSeconds: number): Promise<void> {
    this.offsetSeconds = offsetSeconds
    await writeFile(this.file, `${offsetSeconds < 0 ? '' : '+'}${offsetSeconds}`)
  }

  /** Whether this time could have been read from the clock between `since` (default: now) and now. */
  isAt(time: number, since = Date.now()): boolean {
    const ours = time - this.offsetSeconds * 1000
    return ours > since - blurMs && ours < Date.now() + blurMs
  }
}

const shared = new Clock('api-and-intake')
await shared.set(mostSeconds)
try {
  await prove({
    title: `${options.workers} workers with clocks that jump for ${options.seconds} s`,
    seed,
    load: { programs: Number(options.programs), pauseMs: Number(options['pause-ms']) },
    // Long enough for a worker to claim a message whose lease it wrongly considers expired.
    paceMs: 400,
    parts: ['api', 'intake'],
    isCountsOnly,
    environment: shared.environment,
    injectFaults: jumpAbout,
    findFaults: doubleClaims,
  })
} finally {
  await rm(directory, { recursive: true, force: true })
}

async function jumpAbout(stage: Stage): Promise<FaultReport> {
  const faults: string[] = []
  const clocks = Array.from(
    { length: Number(options.workers) },
    (_, place) => new Clock(`worker-${place + 1}`),
  )
  await Promise.all(
    clocks.map(async (clock, place) => {
      // The clocks are as far apart as possible from the beginning.
      await clock.set(place % 2 === 0 ? mostSeconds : -mostSeconds)
      // A slow start is not a wrong clock.
      const since = isCountsOnly ? Date.now() : undefined
      const worker = await stage.start('worker', { environment: clock.environment })
      faults.push(...disbelief(clock, timeOf(worker), since))
    }),
  )
  let jumps = 0
  let furthest = 0
  const all = [...clocks, shared]
  for (const end = Date.now() + Number(options.seconds) * 1000; Date.now() < end; jumps++) {
    const clock = all[chance.between(0, all.length - 1)] ?? shared
    await clock.set(chance.between(-mostSeconds, mostSeconds))
    const offsets = all.map(({ offsetSeconds }) => offsetSeconds)
    furthest = Math.max(furthest, Math.max(...offsets) - Math.min(...offsets))
    await sleep(chance.between(pauseMs.least, pauseMs.most))
    if (jumps % 20 === 0) say(`${jumps + 1} jumps`)
  }
  // Node.js caches the time of the Date header for a second, and libfaketime caches the offset in the file for a
  // second.
  await shared.set(-mostSeconds)
  await sleep(3000)
  const deadline = Date.now() + waitMs(0, isCountsOnly)
  let time = await timeOfApi(stage)
  while (!shared.isAt(time) && Date.now() < deadline) {
    await sleep(1000)
    time = await timeOfApi(stage)
  }
  faults.push(...disbelief(shared, time))
  return {
    lines: [`${jumps} jumps of ${all.length} clocks, at most ${furthest} s apart`],
    inFlight: [],
    faults,
  }
}

/** Returns a fault if the clock does not have its offset. Without it, the run would prove nothing. */
function disbelief(clock: Clock, time: number, since?: number): string[] {
  if (clock.isAt(time, since)) return []
  return [
    `${clock.name} should be off by ${clock.offsetSeconds} s, but is off by ${(time - Date.now()) / 1000}`,
  ]
}

/** The time in the log line that reports readiness. */
function timeOf({ ready }: Part): number {
  return Date.parse(String(ready['time']))
}

async function timeOfApi({ postern }: Stage): Promise<number> {
  const { headers } = await fetch(`${postern.url}/healthz`)
  return Date.parse(headers.get('date') ?? '')
}

/**
 * A worker that claims a message leased by another worker makes a second attempt while the first has no recorded
 * result. If a second attempt is made because the MTA was too slow to respond, as can happen on a busy machine, the row
 * of the first attempt records that cause.
 */
async function doubleClaims({ query }: Stage): Promise<string[]> {
  const [row] = await query<{ recipients: number; sent: number; again: number; unexplained: number }>(
    `select (select count(*)::int from mail.recipients) as recipients,
            count(*) filter (where outcome = 'sent')::int as sent,
            count(*) filter (where attempt > 1)::int as again,
            count(*) filter (where attempt > 1 and not exists (
              select from mail.attempts as earlier
               where (earlier.message_id, earlier.recipient_no) = (attempts.message_id, attempts.recipient_no)
                 and earlier.attempt = attempts.attempt - 1
                 and earlier.outcome in ('deferred', 'unreachable')))::int as unexplained
       from mail.attempts`,
  )
  if (!row) return ['the number of attempts is unknown']
  const { recipients, sent, again, unexplained } = row
  say(`recipients ${recipients}, sent ${sent}, second attempts ${again}, unexplained ${unexplained}`)
  return sent === recipients && unexplained === 0
    ? []
    : [`${sent} were sent to ${recipients} recipients, ${unexplained} second attempts have no recorded cause`]
}
