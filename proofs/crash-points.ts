import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { circumstances } from '../bench/figures.ts'
import { examine, type Findings } from './crash-points/check-life.ts'
import { describePoint, Installation, keyOf, type Point } from './crash-points/installation.ts'
import { Life, type Variant, variants } from './crash-points/variants.ts'
import { Chance } from './random.ts'
import { countsOnlyOption, say, seedOf } from './run.ts'

/**
 * `npm run prove:crash-points`: a process crashes at every point of a mail's life: before each statement, each COMMIT,
 * each SMTP command and each request arrives, and after it is executed, before the response arrives. After a restart the
 * queue must drain, and nothing may be lost. proofs/README.md lists the criteria.
 *
 * Lives without a crash find the points; then each point has its own life.
 */
const { values: options } = parseArgs({
  options: {
    seed: { type: 'string' },
    /** How many lives are gone through at once, each with a PostgreSQL of its own. */
    parallel: { type: 'string', default: '2' },
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
const installations: Installation[] = []
try {
  // One mail at a time, so that the same things happen in every life.
  while (installations.length < Number(options.parallel)) {
    installations.push(await Installation.open({ POSTERN_DISPATCH_CONCURRENCY: '1' }))
  }
  const tallies: Tally[] = []
  for (const variant of chosen) tallies.push(await proveVariant(variant))
  const sum = (pick: (tally: Tally) => number): number => tallies.reduce((all, tally) => all + pick(tally), 0)
  const faults = tallies.flatMap((tally) => tally.faults)
  const unmet = sum((tally) => tally.unmet.length)
  say(`\n${installations[0] ? await circumstances(installations[0].postern.superuser) : ''};`)
  say(
    `seed ${seed}, ${((performance.now() - startedAt) / 1000).toFixed(0)} s, ${lives} lives; received twice ${sum((tally) => tally.duplicates)}, given up and reported ${sum((tally) => tally.givenUp)}`,
  )
  for (const fault of faults) say(`FAULT: ${fault}`)
  const of = sum((tally) => tally.chosen)
  say(
    `${sum((tally) => tally.survived)} of ${of} points survived${of < sum((tally) => tally.found) ? `, chosen from ${sum((tally) => tally.found)}` : ''}; not reached ${unmet}.`,
  )
  // Whether a point is met depends on what comes first, which a busy machine changes. One that is not proves nothing.
  const isProved = options['counts-only'] ? sum((tally) => tally.survived) > 0 : unmet === 0 && of > 0
  if (faults.length > 0 || !isProved) process.exitCode = 1
} finally {
  await Promise.all(installations.map((installation) => installation.close()))
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
    installations.map(async (installation) => {
      for (const point of left) await dieAt(installation, variant, point, tally)
    }),
  )
  for (const point of tally.unmet) say(`  not reached: ${describePoint(point)}`)
  say(`${variant.name}: ${tally.survived} of ${tally.chosen} points`)
  return tally
}

/** Those that two lives have in common: what a part does only now and then is no point to wait for. */
async function findPoints(variant: Variant): Promise<Point[]> {
  const [installation] = installations
  if (!installation) throw new Error('no installation')
  // The first life makes what is made once.
  await Promise.all(installations.map((each) => live(each, variant)))
  const background = await withoutMail(installation)
  const found: Map<string, Point>[] = []
  for (let time = 0; time < 2; time++) {
    const { faults } = await live(installation, variant)
    if (faults.length > 0) throw new Error(`without a crash: ${faults.join('; ')}`)
    const points = installation.passed.filter(({ part, what }) => !background.has(`${part} ${what}`))
    found.push(new Map(points.map((point) => [keyOf(point), point])))
  }
  const [one = new Map<string, Point>(), other = new Map<string, Point>()] = found
  const common = [...one.values()].filter((point) => other.has(keyOf(point)))
  const now = new Set([...one.keys(), ...other.keys()]).size - common.length
  say(`${variant.name}: ${common.length} points${now > 0 ? `, and ${now} that do not occur every time` : ''}`)
  if (common.length < 20) throw new Error('too few points were found')
  return common.filter((point) => only.test(`${variant.name}: ${describePoint(point)}`))
}

/** What is said anyway is no part of a mail's life. */
async function withoutMail(installation: Installation): Promise<Set<string>> {
  await installation.watch()
  installation.step('nothing')
  await sleep(idleMs)
  await installation.rest()
  return new Set(installation.passed.map(({ part, what }) => `${part} ${what}`))
}

function pick(points: readonly Point[]): Point[] {
  if (points.length <= sample) return [...points]
  const chance = new Chance(seed)
  const left = [...points]
  return Array.from({ length: sample }, () => left.splice(chance.between(0, left.length - 1), 1)).flat()
}

async function dieAt(
  installation: Installation,
  variant: Variant,
  point: Point,
  tally: Tally,
): Promise<void> {
  for (let time = 1; time <= triesAtMost; time++) {
    const { isMet, faults, duplicates, isGivenUp } = await live(installation, variant, point)
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

async function live(installation: Installation, variant: Variant, point?: Point): Promise<Lived> {
  const name = `life${++lives}`
  await installation.watch(point)
  const life = new Life(installation, variant, name)
  try {
    await life.live()
    await installation.untilNone('select from mail.outbox')
    const isMet = await installation.rest()
    return { isMet, ...(await examine(installation, variant, life, name)) }
  } catch (error) {
    await installation.rest()
    return { isMet: true, duplicates: 0, isGivenUp: false, faults: [(error as Error).message] }
  }
}
