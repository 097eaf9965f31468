import { median, spread } from './figures.ts'

/**
 * The verdict of a run. `missed`: every count is correct, but a speed, a duration or a ratio did not reach its goal.
 * `failed`: a count is wrong, or the run crashed.
 */
export type RowVerdict = 'reached' | 'missed' | 'failed'

/** The machine-readable summary of a run, which `npm run prove:all` reads (proofs/all.ts). */
export interface RunResult {
  /** The row that the result belongs to (proofs/all/rows.ts), if the command measures several. */
  row?: string
  verdict: RowVerdict
  /** The measured figures in a few words. */
  figures: string
  seed?: number
}

/** Prints the result as one line of JSON. A run can print several; the worst counts. */
export function printResult(result: RunResult): void {
  process.stdout.write(`result: ${JSON.stringify(result)}\n`)
}

/** The results in the output of a run. */
export const readResults = (output: string): RunResult[] =>
  [...output.matchAll(/^result: (\{.*\})$/gm)].map(([, json = '']) => JSON.parse(json))

/** The result of a ratio with a goal. The median of the rounds counts. */
export function printRatio(
  row: string,
  what: string,
  ratios: number[],
  goal: { atLeast: number } | { atMost: number },
): void {
  // Without rounds, the median is NaN, and the goal is not reached.
  const isReached = 'atLeast' in goal ? median(ratios) >= goal.atLeast : median(ratios) <= goal.atMost
  const limit = 'atLeast' in goal ? `≥ ${goal.atLeast}` : `≤ ${goal.atMost}`
  printResult({
    row,
    verdict: isReached ? 'reached' : 'missed',
    figures: `${what} ${spread(ratios, 2)}, goal ${limit}, rounds ${ratios.length}`,
  })
}

/** Durations above their limits are a missed goal; all other faults fail the run. */
export function verdictOf(faults: readonly string[], late: readonly string[]): RowVerdict {
  if (faults.length > 0) return 'failed'
  return late.length > 0 ? 'missed' : 'reached'
}
