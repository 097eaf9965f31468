import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { spread } from '../bench/figures.ts'
import { Postfix } from '../server/src/testing/peers/postfix.ts'
import type { Promised } from './check.ts'
import { mailsInQueue, postfixAsReporter } from './postfix-queue.ts'
import { Chance } from './random.ts'
import { hasRecovered, type Recovery, waitForRecovery } from './recovery.ts'
import {
  countsOnlyOption,
  type FaultReport,
  leaseReader,
  prove,
  type Stage,
  say,
  seedOf,
  waitMs,
} from './run.ts'
import { SmallDisk } from './small-disk.ts'

/**
 * `npm run prove:disk`: PostgreSQL's data, its WAL and Postfix's queue are on separate small disks that fill up under
 * load. proofs/README.md lists the criteria.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    'full-for-ms': { type: 'string', default: '20000' },
    'back-within-ms': { type: 'string', default: '60000' },
    seed: { type: 'string' },
    programs: { type: 'string', default: '6' },
    'pause-ms': { type: 'string', default: '200' },
    'skip-waits': { type: 'boolean', default: false },
    ...countsOnlyOption,
  },
})
const seed = seedOf(options.seed)
const rounds = Number(options.rounds)
const fullForMs = Number(options['full-for-ms'])
const backWithinMs = Number(options['back-within-ms'])
const isCountsOnly = options['counts-only']
const bitesWithinMs = waitMs(60_000, isCountsOnly)
const pollEveryMs = 100

const places = ['data', 'wal', 'queue'] as const
type Place = (typeof places)[number]

const describe = ({ acceptedMs, dispatchedMs }: Recovery): string =>
  `a message was accepted ${acceptedMs.toFixed(0)} ms after space was freed, and received after ${dispatchedMs.toFixed(0)} ms`

const summaryOf = (back: Recovery[]): string =>
  `ms from freed space to the first accepted message ${spread(back.map(({ acceptedMs }) => acceptedMs))}, ` +
  `received ${spread(back.map(({ dispatchedMs }) => dispatchedMs))}`

/** Waits until the full disk has an effect. Returns false after a timeout. */
const bites: Record<Place, (stage: Stage) => Promise<boolean>> = {
  data: ({ loadResults }) => {
    const before = loadResults.answers.length
    return within(async () => loadResults.answers.length > before)
  },
  // Each WAL switch needs a new file of 16 MB. If there is no space for it, PostgreSQL crashes or stops responding.
  wal: ({ query }) =>
    within(() =>
      query('select pg_switch_wal(), txid_current()').then(
        () => false,
        () => true,
      ),
    ),
  queue: async () => {
    const count = async () => (await theMta().log()).split('Insufficient system storage').length
    const before = await count()
    return within(async () => (await count()) > before)
  },
}

const disks = await makeDisks()
let postfix: Postfix | undefined
try {
  await prove({
    title: `${rounds} times each: full disk of PostgreSQL's data, of its WAL, of Postfix's queue`,
    seed,
    load: { programs: Number(options.programs), pauseMs: Number(options['pause-ms']) },
    data: disks.data.directory,
    wal: disks.wal.directory,
    skipsWaits: options['skip-waits'],
    isCountsOnly,
    drainMs: 300_000,
    async lay({ sink, intakePort }) {
      postfix = await Postfix.keep({
        sinkPort: sink.port,
        feedbackPort: intakePort,
        delayWarningSeconds: 0,
        queueDirectory: disks.queue.directory,
      })
      return { POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${postfix.port}` }
    },
    reports: ({ sink }) => postfixAsReporter(theMta(), sink),
    async injectFaults(stage) {
      const supervisor = supervise(stage)
      try {
        return await fillInTurn(stage)
      } finally {
        await supervisor.stop()
      }
    },
  })
} finally {
  await postfix?.remove()
  for (const place of places) await disks[place].remove()
}

/**
 * Enough space for the data of a run. Postfix accepts mail only if there is space for 1.5 times the largest message.
 */
async function makeDisks(): Promise<Record<Place, SmallDisk>> {
  try {
    return {
      data: await SmallDisk.make(512),
      wal: await SmallDisk.make(512),
      queue: await SmallDisk.make(256),
    }
  } catch (error) {
    say(`NOT PROVED: small file systems cannot be created here (${(error as Error).message.trim()}).`)
    say('This needs root and loop mounts, which a container may lack.')
    process.exit(1)
  }
}

function theMta(): Postfix {
  if (!postfix) throw new Error('no MTA')
  return postfix
}

async function fillInTurn(stage: Stage): Promise<FaultReport> {
  const chance = new Chance(seed)
  const leased = leaseReader(stage)
  const inFlight: Promised[][] = []
  const back: Record<Place, Recovery[]> = { data: [], wal: [], queue: [] }
  const faults: string[] = []
  const late: string[] = []
  for (let round = 1; round <= rounds; round++) {
    for (const place of places) {
      await sleep(chance.between(500, 2000))
      const watch = watchFlight(stage, leased)
      await disks[place].fill()
      if (!(await bites[place](stage))) faults.push(`round ${round}: the full disk (${place}) had no effect`)
      await sleep(chance.between(fullForMs / 4, fullForMs))
      await disks[place].free()
      const recovery = await waitForRecovery(stage, isCountsOnly)(Date.now())
      inFlight.push(await watch.stop())
      back[place].push(recovery)
      say(`round ${round}: ${place} was full; ${describe(recovery)}`)
      if (!hasRecovered(recovery)) faults.push(`round ${round}, ${place}: it did not recover`)
      else if (Math.max(recovery.acceptedMs, recovery.dispatchedMs) > backWithinMs)
        late.push(`round ${round}, ${place}: ${describe(recovery)}`)
    }
  }
  return {
    lines: places.map((place) => `${place} full ${rounds} times; ${summaryOf(back[place])}`),
    inFlight,
    faults,
    late,
  }
}

/**
 * Messages in flight while a disk is full: those leased by a worker, and those in Postfix's queue, because Postfix
 * resends messages whose delivery it cannot record. The messages are polled continuously, because the load continues.
 */
function watchFlight(stage: Stage, leased: () => Promise<Promised[]>): { stop(): Promise<Promised[]> } {
  const leases: Promised[] = []
  const queued = new Map<string, Promised>()
  const readState = async (): Promise<void> => {
    leases.push(...(await leased()))
    for (const mail of await mailsInQueue(theMta(), stage)) queued.set(`${mail.id} ${mail.recipient}`, mail)
  }
  let isStopping = false
  const polling = (async () => {
    // PostgreSQL does not respond while there is no space for its WAL.
    for (; !isStopping; await sleep(pollEveryMs)) await readState().catch(() => {})
    await readState()
  })()
  return {
    async stop() {
      isStopping = true
      await polling
      return [...leases, ...queued.values()]
    },
  }
}

async function within(isSo: () => Promise<boolean>): Promise<boolean> {
  for (const deadline = Date.now() + bitesWithinMs; Date.now() < deadline; await sleep(50))
    if (await isSo()) return true
  return false
}

/** Restarts PostgreSQL whenever it exits, as systemd would. */
function supervise({ postern: { postgres } }: Stage): { stop(): Promise<void> } {
  let isStopping = false
  const running = (async () => {
    for (; !isStopping; await sleep(500)) {
      if (!(await postgres.isRunning())) await postgres.start().catch(() => {})
    }
  })()
  return {
    async stop() {
      isStopping = true
      await running
    },
  }
}
