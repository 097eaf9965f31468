import { Chance, seed } from './random.ts'

/**
 * Tests that try everything against everything run on a sample in CI, chosen by the seed of the run, and on all of it with
 * `POSTERN_TEST_EXHAUSTIVE=1` (`npm run prove:access`).
 */
const isExhaustive = process.env['POSTERN_TEST_EXHAUSTIVE'] === '1'
const chance = new Chance(seed)

/** One in so many, and at least one of each group. */
export function sampleOf<T>(all: readonly T[], oneIn: number, groupOf: (one: T) => string = () => ''): T[] {
  if (isExhaustive) return [...all]
  const groups = Map.groupBy(all, groupOf)
  const chosen = new Set(
    [...groups.values()].flatMap((group) => chance.some(Math.ceil(group.length / oneIn), group)),
  )
  return all.filter((one) => chosen.has(one))
}
