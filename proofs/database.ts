import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { spread } from '../bench/figures.ts'
import type { Promised } from './check.ts'
import { type Comeback, comebacks, isBack } from './comeback.ts'
import { Chance } from './random.ts'
import { countsOnlyOption, leaseBook, prove, type Stage, say, seedOf, type Wrongs } from './run.ts'

/**
 * `npm run prove:database`: PostgreSQL is killed in moments of chance while mail goes through, and started again.
 * README.md in the folder above says what is checked.
 */
const { values: options } = parseArgs({
  options: {
    kills: { type: 'string', default: '50' },
    seed: { type: 'string' },
    programs: { type: 'string', default: '8' },
    'pause-ms': { type: 'string', default: '150' },
    hasty: { type: 'boolean', default: false },
    ...countsOnlyOption,
  },
})
const kills = Number(options.kills)
const seed = seedOf(options.seed)
const isCountsOnly = options['counts-only']
const backWithinMs = 10_000

await prove({
  title: `${kills} kills of PostgreSQL`,
  seed,
  load: { programs: Number(options.programs), pauseMs: Number(options['pause-ms']) },
  isHasty: options.hasty,
  isCountsOnly,
  goWrong: killAgainAndAgain,
})

async function killAgainAndAgain(stage: Stage): Promise<Wrongs> {
  const { postgres } = stage.postern
  const chance = new Chance(seed)
  const leased = leaseBook(stage)
  const comeback = comebacks(stage, isCountsOnly)
  const inFlight: Promised[][] = []
  const back: Comeback[] = []
  for (let kill = 1; kill <= kills; kill++) {
    await sleep(chance.between(100, 2000))
    const before = await leased()
    await postgres.kill()
    // Somebody has to see that it is gone, and be told so.
    await sleep(chance.between(0, 1500))
    await postgres.start()
    const answersAt = Date.now()
    inFlight.push([...before, ...(await leased())])
    back.push(await comeback(answersAt))
    if (kill % 10 === 0) say(`${kill} kills`)
  }
  const told = (of: 'acceptedMs' | 'dispatchedMs'): string => spread(back.map((one) => one[of]))
  return {
    lines: [
      `PostgreSQL killed ${kills} times; ms from its answering again: ` +
        `first mail accepted ${told('acceptedMs')}, first of these with the MTA ${told('dispatchedMs')}`,
    ],
    inFlight,
    faults: back.flatMap((one, kill) => (isBack(one) ? [] : [`kill ${kill + 1}: it did not come back`])),
    late: back.flatMap((one, kill) => {
      const { acceptedMs, dispatchedMs } = one
      return !isBack(one) || Math.max(acceptedMs, dispatchedMs) <= backWithinMs
        ? []
        : [`kill ${kill + 1}: back after ${acceptedMs.toFixed(0)} and ${dispatchedMs.toFixed(0)} ms`]
    }),
  }
}
