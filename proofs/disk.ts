import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { spread } from '../bench/figures.ts'
import { Postfix } from '../server/src/testing/peers/postfix.ts'
import type { Promised } from './check.ts'
import { type Comeback, comebacks, isBack } from './comeback.ts'
import { mailsInQueue, postfixAsReporter } from './postfix-queue.ts'
import { Chance } from './random.ts'
import { countsOnlyOption, leaseBook, prove, type Stage, say, seedOf, type Wrongs, waitMs } from './run.ts'
import { SmallDisk } from './small-disk.ts'

/**
 * `npm run prove:disk`: PostgreSQL's data, its write-ahead log and Postfix's queue lie on small disks of their own, which
 * are full now and then while mail goes through. README.md in the folder above says what is checked.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    'full-for-ms': { type: 'string', default: '20000' },
    'back-within-ms': { type: 'string', default: '60000' },
    seed: { type: 'string' },
    programs: { type: 'string', default: '6' },
    'pause-ms': { type: 'string', default: '200' },
    hasty: { type: 'boolean', default: false },
    ...countsOnlyOption,
  },
})
const seed = seedOf(options.seed)
const rounds = Number(options.rounds)
const fullForMs = Number(options['full-for-ms'])
const backWithinMs = Number(options['back-within-ms'])
const isCountsOnly = options['counts-only']
const bitesWithinMs = waitMs(60_000, isCountsOnly)
const lookEveryMs = 100

const places = ['data', 'wal', 'queue'] as const
type Place = (typeof places)[number]

const told = ({ acceptedMs, dispatchedMs }: Comeback): string =>
  `${acceptedMs.toFixed(0)} ms after there was room a mail was accepted, ${dispatchedMs.toFixed(0)} ms after it was received`

const summaryOf = (back: Comeback[]): string =>
  `ms from room to the first mail accepted ${spread(back.map(({ acceptedMs }) => acceptedMs))}, ` +
  `received ${spread(back.map(({ dispatchedMs }) => dispatchedMs))}`

/** Ends when the full disk is felt; false if that takes too long. */
const bites: Record<Place, (stage: Stage) => Promise<boolean>> = {
  data: ({ spoken }) => {
    const before = spoken.answers.length
    return within(async () => spoken.answers.length > before)
  },
  // Each switch takes a new file of 16 MB. PostgreSQL does not survive having none, or answers no more.
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
    title: `${rounds} times each: no room for PostgreSQL's data, for its log, for Postfix's queue`,
    seed,
    load: { programs: Number(options.programs), pauseMs: Number(options['pause-ms']) },
    data: disks.data.directory,
    wal: disks.wal.directory,
    isHasty: options.hasty,
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
    async goWrong(stage) {
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

/** Room for what is stored in a run. Postfix takes mail only while one and a half of the largest would have room. */
async function makeDisks(): Promise<Record<Place, SmallDisk>> {
  try {
    return {
      data: await SmallDisk.make(512),
      wal: await SmallDisk.make(512),
      queue: await SmallDisk.make(256),
    }
  } catch (error) {
    say(`NOT PROVED: no small disks can be made here (${(error as Error).message.trim()}).`)
    say('It takes root, and a kernel that mounts files; a container may do without either.')
    process.exit(1)
  }
}

function theMta(): Postfix {
  if (!postfix) throw new Error('no MTA')
  return postfix
}

async function fillInTurn(stage: Stage): Promise<Wrongs> {
  const chance = new Chance(seed)
  const leased = leaseBook(stage)
  const inFlight: Promised[][] = []
  const back: Record<Place, Comeback[]> = { data: [], wal: [], queue: [] }
  const faults: string[] = []
  const late: string[] = []
  for (let round = 1; round <= rounds; round++) {
    for (const place of places) {
      await sleep(chance.between(500, 2000))
      const watch = watchFlight(stage, leased)
      await disks[place].fill()
      if (!(await bites[place](stage))) faults.push(`round ${round}: nobody noticed that ${place} was full`)
      await sleep(chance.between(fullForMs / 4, fullForMs))
      await disks[place].free()
      const comeback = await comebacks(stage, isCountsOnly)(Date.now())
      inFlight.push(await watch.stop())
      back[place].push(comeback)
      say(`round ${round}: ${place} was full; ${told(comeback)}`)
      if (!isBack(comeback)) faults.push(`round ${round}, ${place}: it did not come back`)
      else if (Math.max(comeback.acceptedMs, comeback.dispatchedMs) > backWithinMs)
        late.push(`round ${round}, ${place}: ${told(comeback)}`)
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
 * What is between two hands while a disk is full: leased by a worker, or with Postfix, which sends again what it cannot
 * write down as sent. Mail goes on coming in all the time, so it is looked at all the time.
 */
function watchFlight(stage: Stage, leased: () => Promise<Promised[]>): { stop(): Promise<Promised[]> } {
  const leases: Promised[] = []
  const queued = new Map<string, Promised>()
  const look = async (): Promise<void> => {
    leases.push(...(await leased()))
    for (const mail of await mailsInQueue(theMta(), stage)) queued.set(`${mail.id} ${mail.recipient}`, mail)
  }
  let isStopping = false
  const looking = (async () => {
    // PostgreSQL does not answer when it has no room for its log.
    for (; !isStopping; await sleep(lookEveryMs)) await look().catch(() => {})
    await look()
  })()
  return {
    async stop() {
      isStopping = true
      await looking
      return [...leases, ...queued.values()]
    },
  }
}

async function within(isSo: () => Promise<boolean>): Promise<boolean> {
  for (const deadline = Date.now() + bitesWithinMs; Date.now() < deadline; await sleep(50))
    if (await isSo()) return true
  return false
}

/** PostgreSQL that has ended is started again, and again, as systemd would do it. */
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
