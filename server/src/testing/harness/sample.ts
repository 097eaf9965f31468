import { Chance, seed } from './random.ts'

/**
 * In CI, exhaustive tests run on a sample chosen by the run's seed. With `POSTERN_TEST_EXHAUSTIVE=1` (`npm run
 * prove:access`) they run on everything.
 */
const isExhaustive = process.env['POSTERN_TEST_EXHAUSTIVE'] === '1'
const chance = new Chance(seed)

/** Picks one in `oneIn` items, but at least one per group. */
export function sampleOf<T>(all: readonly T[], oneIn: number, groupOf: (one: T) => string = () => ''): T[] {
  if (isExhaustive) return [...all]
  const groups = Map.groupBy(all, groupOf)
  const chosen = new Set(
    [...groups.values()].flatMap((group) => chance.some(Math.ceil(group.length / oneIn), group)),
  )
  return all.filter((one) => chosen.has(one))
}
