import { Caller, type FuzzContext } from './caller.ts'
import { type Failure, runSequence } from './sequence.ts'
import { Tally } from './tally.ts'

/**
 * Removes steps from a failing sequence while it still fails with the same kind of violation: first halves, then
 * quarters and so on, with at most `maxRuns` runs.
 */
const maxRuns = 60

export async function shrink(
  context: FuzzContext,
  seed: number,
  steps: number,
  failure: Failure,
): Promise<{ kept: number[]; failure: Failure }> {
  const separate = { ...context, tally: new Tally() }
  const caller = new Caller(separate)
  const kind = failure.found.violations[0]?.kind
  let kept = Array.from({ length: Math.min(steps, failure.step + 1) }, (_, n) => n)
  let best = failure
  let runs = 0
  const fails = async (wanted: number[]): Promise<Failure | undefined> => {
    const found = await runSequence(separate, caller, {
      seed,
      steps,
      includes: (step) => wanted.includes(step),
    })
    return found?.found.violations[0]?.kind === kind ? found : undefined
  }
  for (let size = Math.ceil(kept.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < kept.length && runs < maxRuns; ) {
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
