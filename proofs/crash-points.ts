import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { circumstances } from '../bench/figures.ts'
import { printResult } from '../bench/result.ts'
import { examine, type Findings } from './crash-points/check-life.ts'
import { describePoint, Installation, keyOf, type Point } from './crash-points/installation.ts'
import { Life, type Variant, variants } from './crash-points/variants.ts'
import { Chance } from './random.ts'
import { countsOnlyOption, say, seedOf } from './run.ts'

/**
 * `npm run prove:crash-points`: a process crashes at every point in a message's life cycle: before each statement,
 * COMMIT, SMTP command or request reaches the server, and after it is executed but before the response arrives. After a
 * restart the queue must drain, and no message may be lost. proofs/README.md lists the criteria.
 *
 * The points are determined by running life cycles without a crash; then one life cycle is run for each point.
 */
const { values: options } = parseArgs({
  options: {
    seed: { type: 'string' },
    /** Number of concurrent life cycles, each with its own PostgreSQL. */
    parallel: { type: 'string', default: '2' },
    /** A regular expression that matches `variant: point`, as printed by `--list`. Default: all. */
    only: { type: 'string', default: '' },
    /** A regular expression that matches the names of variants. */
    variants: { type: 'string', default: '' },
    /** The number of points per variant. The seed determines which points are chosen. Default: all. */
    sample: { type: 'string', default: 'Infinity' },
    list: { type: 'boolean', default: false },
    ...countsOnlyOption,
  },
})
const seed = seedOf(options.seed)
const sample = Number(options.sample)
const only = new RegExp(options.only)
/** A point that depends on timing may not be reached on the first attempt. */
const triesAtMost = 4
/** Long enough for all of the processes' periodic work, except for work done once a minute. */
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
  // One message at a time, so every life cycle is the same.
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
    `seed ${seed}, ${((performance.now() - startedAt) / 1000).toFixed(0)} s, ${lives} life cycles; received twice ${sum((tally) => tally.duplicates)}, given up and reported ${sum((tally) => tally.givenUp)}`,
  )
  for (const fault of faults) say(`FAULT: ${fault}`)
  const of = sum((tally) => tally.chosen)
  say(
    `${sum((tally) => tally.survived)} of ${of} points survived${of < sum((tally) => tally.found) ? `, chosen from ${sum((tally) => tally.found)}` : ''}; not reached ${unmet}.`,
  )
  // On a busy machine the order of statements varies, so a point may not be reached.
  const isProved = options['counts-only'] ? sum((tally) => tally.survived) > 0 : unmet === 0 && of > 0
  const hasFailed = faults.length > 0 || !isProved
  if (hasFailed) process.exitCode = 1
  const figures = `${sum((tally) => tally.survived)} of ${of} points survived, not reached ${unmet}, life cycles ${lives}`
  printResult({ verdict: hasFailed ? 'failed' : 'reached', figures, seed })
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

/** The points that two life cycles have in common. Statements that occur only sometimes are not points. */
async function findPoints(variant: Variant): Promise<Point[]> {
  const [installation] = installations
  if (!installation) throw new Error('no installation')
  // The first life cycle creates everything that is created only once.
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

/** Traffic that also occurs without mail and is therefore not part of a message's life cycle. */
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
