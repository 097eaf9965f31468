import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { spread } from '../bench/figures.ts'
import type { Promised } from './check.ts'
import { Chance } from './random.ts'
import { hasRecovered, type Recovery, waitForRecovery } from './recovery.ts'
import { countsOnlyOption, type FaultReport, leaseReader, prove, type Stage, say, seedOf } from './run.ts'

/**
 * `npm run prove:database`: PostgreSQL is killed at random moments under load, and restarted. proofs/README.md lists
 * the criteria.
 */
const { values: options } = parseArgs({
  options: {
    kills: { type: 'string', default: '50' },
    seed: { type: 'string' },
    programs: { type: 'string', default: '8' },
    'pause-ms': { type: 'string', default: '150' },
    'skip-waits': { type: 'boolean', default: false },
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
  skipsWaits: options['skip-waits'],
  isCountsOnly,
  injectFaults: killAgainAndAgain,
})

async function killAgainAndAgain(stage: Stage): Promise<FaultReport> {
  const { postgres } = stage.postern
  const chance = new Chance(seed)
  const leased = leaseReader(stage)
  const recovery = waitForRecovery(stage, isCountsOnly)
  const inFlight: Promised[][] = []
  const back: Recovery[] = []
  for (let kill = 1; kill <= kills; kill++) {
    await sleep(chance.between(100, 2000))
    const before = await leased()
    await postgres.kill()
    // Long enough for clients to notice the outage.
    await sleep(chance.between(0, 1500))
    await postgres.start()
    const answersAt = Date.now()
    inFlight.push([...before, ...(await leased())])
    back.push(await recovery(answersAt))
    if (kill % 10 === 0) say(`${kill} kills`)
  }
  const spreadOf = (of: 'acceptedMs' | 'dispatchedMs'): string => spread(back.map((one) => one[of]))
  return {
    lines: [
      `PostgreSQL killed ${kills} times; ms after it responded again: ` +
        `first message accepted ${spreadOf('acceptedMs')}, first of these received by the MTA ${spreadOf('dispatchedMs')}`,
    ],
    inFlight,
    faults: back.flatMap((one, kill) =>
      hasRecovered(one) ? [] : [`kill ${kill + 1}: it did not come back`],
    ),
    late: back.flatMap((one, kill) => {
      const { acceptedMs, dispatchedMs } = one
      return !hasRecovered(one) || Math.max(acceptedMs, dispatchedMs) <= backWithinMs
        ? []
        : [`kill ${kill + 1}: back after ${acceptedMs.toFixed(0)} and ${dispatchedMs.toFixed(0)} ms`]
    }),
  }
}
