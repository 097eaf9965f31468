import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { circumstances } from '../bench/figures.ts'
import { examine, type Findings } from './points/examine.ts'
import { describePoint, keyOf, Lane, type Point } from './points/lane.ts'
import { Life, type Variant, variants } from './points/variants.ts'
import { Chance } from './random.ts'
import { countsOnlyOption, say, seedOf } from './run.ts'

/**
 * `npm run prove:points`: a process dies at every point of a mail's life: before each statement, each COMMIT, each word of
 * SMTP and each request arrives where it is to go, and when it is done and the answer is on its way back. Started again,
 * everything must come to rest, and nothing be lost. README.md in the folder above says what is checked.
 *
 * Lives without a death find the points; then each has a life of its own.
 */
const { values: options } = parseArgs({
  options: {
    seed: { type: 'string' },
    /** How many lives are gone through at once, each with a PostgreSQL of its own. */
    lanes: { type: 'string', default: '2' },
    /** A regular expression for `variant: point`, as `--list` tells them; all by default. */
    only: { type: 'string', default: '' },
    /** The same for the names of variants. */
    variants: { type: 'string', default: '' },
    /** So many points of each variant, chosen by the seed; all by default. */
    sample: { type: 'string', default: 'Infinity' },
    list: { type: 'boolean', default: false },
    ...countsOnlyOption,
  },
})
const seed = seedOf(options.seed)
const sample = Number(options.sample)
const only = new RegExp(options.only)
/** A point that comes about by the way things fall may not be met the first time. */
const triesAtMost = 4
/** Everything that a part does again and again, it has done in that time; but for what it does once a minute. */
const idleMs = 2500

interface Tally {
  found: number
  chosen: number
  survived: number
  duplicates: number
  givenUp: number
  unmet: Point[]
  faults: string[]
}

let lives = 0
const chosen = variants.filter(({ name }) => new RegExp(options.variants).test(name))
say(
  `${chosen.length} variants, ${Number.isFinite(sample) ? `a sample of ${sample} points each, ` : ''}seed ${seed}`,
)
const startedAt = performance.now()
const lanes: Lane[] = []
try {
  // One mail at a time, so that the same things happen in every life.
  while (lanes.length < Number(options.lanes)) {
    lanes.push(await Lane.open({ POSTERN_DISPATCH_CONCURRENCY: '1' }))
  }
  const tallies: Tally[] = []
  for (const variant of chosen) tallies.push(await proveVariant(variant))
  const sum = (pick: (tally: Tally) => number): number => tallies.reduce((all, tally) => all + pick(tally), 0)
  const faults = tallies.flatMap((tally) => tally.faults)
  const unmet = sum((tally) => tally.unmet.length)
  say(`\n${lanes[0] ? await circumstances(lanes[0].postern.superuser) : ''};`)
  say(
    `seed ${seed}, ${((performance.now() - startedAt) / 1000).toFixed(0)} s, ${lives} lives; received twice ${sum((tally) => tally.duplicates)}, given up and told of ${sum((tally) => tally.givenUp)}`,
  )
  for (const fault of faults) say(`FAULT: ${fault}`)
  const of = sum((tally) => tally.chosen)
  say(
    `${sum((tally) => tally.survived)} of ${of} points survived${of < sum((tally) => tally.found) ? `, chosen from ${sum((tally) => tally.found)}` : ''}; not met ${unmet}.`,
  )
  // Whether a point is met depends on what comes first, which a busy machine changes. One that is not proves nothing.
  const isProved = options['counts-only'] ? sum((tally) => tally.survived) > 0 : unmet === 0 && of > 0
  if (faults.length > 0 || !isProved) process.exitCode = 1
} finally {
  await Promise.all(lanes.map((lane) => lane.close()))
}

async function proveVariant(variant: Variant): Promise<Tally> {
  const points = await findPoints(variant)
  const picked = pick(points)
  const tally: Tally = {
    found: points.length,
    chosen: picked.length,
    survived: 0,
    duplicates: 0,
    givenUp: 0,
    unmet: [],
    faults: [],
  }
  if (options.list) for (const point of points) say(`  ${describePoint(point)}`)
  const left = picked.values()
  await Promise.all(
    lanes.map(async (lane) => {
      for (const point of left) await dieAt(lane, variant, point, tally)
    }),
  )
  for (const point of tally.unmet) say(`  not met: ${describePoint(point)}`)
  say(`${variant.name}: ${tally.survived} of ${tally.chosen} points`)
  return tally
}

/** Those that two lives have in common: what a part does only now and then is no point to wait for. */
async function findPoints(variant: Variant): Promise<Point[]> {
  const [lane] = lanes
  if (!lane) throw new Error('no lane')
  // The first life makes what is made once.
  await Promise.all(lanes.map((each) => live(each, variant)))
  const background = await withoutMail(lane)
  const found: Map<string, Point>[] = []
  for (let time = 0; time < 2; time++) {
    const { faults } = await live(lane, variant)
    if (faults.length > 0) throw new Error(`without any death: ${faults.join('; ')}`)
    const points = lane.passed.filter(({ part, what }) => !background.has(`${part} ${what}`))
    found.push(new Map(points.map((point) => [keyOf(point), point])))
  }
  const [one = new Map<string, Point>(), other = new Map<string, Point>()] = found
  const common = [...one.values()].filter((point) => other.has(keyOf(point)))
  const now = new Set([...one.keys(), ...other.keys()]).size - common.length
  say(`${variant.name}: ${common.length} points${now > 0 ? `, and ${now} that are not there each time` : ''}`)
  if (common.length < 20) throw new Error('too few points to be all')
  return common.filter((point) => only.test(`${variant.name}: ${describePoint(point)}`))
}

/** What is said anyway is no part of a mail's life. */
async function withoutMail(lane: Lane): Promise<Set<string>> {
  await lane.watch()
  lane.step('nothing')
  await sleep(idleMs)
  await lane.rest()
  return new Set(lane.passed.map(({ part, what }) => `${part} ${what}`))
}

function pick(points: readonly Point[]): Point[] {
  if (points.length <= sample) return [...points]
  const chance = new Chance(seed)
  const left = [...points]
  return Array.from({ length: sample }, () => left.splice(chance.between(0, left.length - 1), 1)).flat()
}

async function dieAt(lane: Lane, variant: Variant, point: Point, tally: Tally): Promise<void> {
  for (let time = 1; time <= triesAtMost; time++) {
    const { isMet, faults, duplicates, isGivenUp } = await live(lane, variant, point)
    tally.faults.push(...faults.map((fault) => `${variant.name}, ${describePoint(point)}: ${fault}`))
    if (faults.length > 0) return
    if (!isMet) continue
    tally.survived++
    if (tally.survived % 10 === 0) say(`  ${tally.survived} of ${tally.chosen}`)
    tally.duplicates += duplicates
    if (isGivenUp) tally.givenUp++
    return
  }
  tally.unmet.push(point)
}

interface Lived extends Findings {
  isMet: boolean
}

async function live(lane: Lane, variant: Variant, point?: Point): Promise<Lived> {
  const name = `life${++lives}`
  await lane.watch(point)
  const life = new Life(lane, variant, name)
  try {
    await life.live()
    await lane.untilNone('select from mail.outbox')
    const isMet = await lane.rest()
    return { isMet, ...(await examine(lane, variant, life, name)) }
  } catch (error) {
    await lane.rest()
    return { isMet: true, duplicates: 0, isGivenUp: false, faults: [(error as Error).message] }
  }
}
