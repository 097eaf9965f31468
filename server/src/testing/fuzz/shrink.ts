import { Caller, type Stage } from './caller.ts'
import { type Failure, runSequence } from './sequence.ts'
import { Tally } from './tally.ts'

/**
 * Fewer steps that fail in the same way. Every step draws from a chance of its own, so that steps can be left out;
 * halves, quarters and so on are tried, as long as it takes no more than so many runs.
 */
const mostRuns = 60

export async function shrink(
  stage: Stage,
  seed: number,
  steps: number,
  failure: Failure,
): Promise<{ kept: number[]; failure: Failure }> {
  const apart = { ...stage, tally: new Tally() }
  const caller = new Caller(apart)
  const kind = failure.found.complaints[0]?.kind
  let kept = Array.from({ length: Math.min(steps, failure.step + 1) }, (_, n) => n)
  let best = failure
  let runs = 0
  const fails = async (wanted: number[]): Promise<Failure | undefined> => {
    const found = await runSequence(apart, caller, { seed, steps, keeps: (step) => wanted.includes(step) })
    return found?.found.complaints[0]?.kind === kind ? found : undefined
  }
  for (let size = Math.ceil(kept.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < kept.length && runs < mostRuns; ) {
      const rest = [...kept.slice(0, at), ...kept.slice(at + size)]
      runs++
      const found = await fails(rest)
      if (found) {
        kept = rest
        best = found
      } else at += size
    }
  }
  caller.close()
  return { kept, failure: best }
}
