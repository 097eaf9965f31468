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
 * `npm run prove:clock`: workers whose clocks are up to 20 minutes apart and jump while mail flows, beside an
 * API and an intake with such clocks (libfaketime). No process is killed, so no mail may arrive twice. proofs/README.md lists the criteria.
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
/** Between a part's clock and ours, what may be left unexplained on a machine that does much else. */
const blurMs = 30_000

const [library] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')
if (library === undefined)
  throw new Error('libfaketime is not installed. On Debian: apt-get install faketime')
const directory = await mkdtemp(path.join(tmpdir(), 'postern-clocks-'))
const chance = new Chance(seed)

/** A clock that is wrong by as much as its file says. */
class Clock {
  readonly name: string
  readonly file: string
  offsetSeconds = 0

  constructor(name: string) {
    this.name = name
    this.file = path.join(directory, name)
  }

  /** Timers go by the time since the machine started, which no jump of a clock changes. */
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

  /** The time was read after `since` by our clock: now, where it has to be read at once. */
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
    // Long enough for a lease that somebody takes for over to be taken.
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
      // As far apart as they may be from the first moment on.
      await clock.set(place % 2 === 0 ? mostSeconds : -mostSeconds)
      // What a slow machine takes to start it is not a wrong clock.
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
  // Node.js tells the time of an answer from a clock that it reads once a second, libfaketime from a file likewise.
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

/** A clock that is right would prove nothing. */
function disbelief(clock: Clock, time: number, since?: number): string[] {
  if (clock.isAt(time, since)) return []
  return [
    `${clock.name} is to be wrong by ${clock.offsetSeconds} s and is so by ${(time - Date.now()) / 1000}`,
  ]
}

/** What it said when it was ready. */
function timeOf({ ready }: Part): number {
  return Date.parse(String(ready['time']))
}

async function timeOfApi({ postern }: Stage): Promise<number> {
  const { headers } = await fetch(`${postern.url}/healthz`)
  return Date.parse(headers.get('date') ?? '')
}

/**
 * Whoever claims a mail that another one has makes a second attempt of it, and of the first nobody tells. One that is made
 * because the MTA was too slow to answer the first, on a machine that does much else, has its story in the row before.
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
  if (!row) return ['nobody knows how often mail was attempted']
  const { recipients, sent, again, unexplained } = row
  say(`recipients ${recipients}, sent ${sent}, second attempts ${again}, of them unexplained ${unexplained}`)
  return sent === recipients && unexplained === 0
    ? []
    : [`${sent} were sent to ${recipients} recipients, ${unexplained} second attempts have no recorded cause`]
}
