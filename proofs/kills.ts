import { parseArgs } from 'node:util'
import type { PartName } from '../bench/postern.ts'
import type { Promised } from './check.ts'
import { killRepeatedly } from './killer.ts'
import { countsOnlyOption, type FaultReport, leaseReader, prove, type Stage, say, seedOf } from './run.ts'

/**
 * `npm run prove:kills`: `postern api`, `worker` and `intake` are killed at random moments under load, and restarted.
 * At the end every acknowledged message must have arrived. proofs/README.md lists the criteria.
 */
const { values: options } = parseArgs({
  options: {
    kills: { type: 'string', default: '500' },
    seed: { type: 'string' },
    programs: { type: 'string', default: '8' },
    'pause-ms': { type: 'string', default: '150' },
    ...countsOnlyOption,
  },
})
const kills = Number(options.kills)
const seed = seedOf(options.seed)
const partNames: readonly PartName[] = ['api', 'worker', 'intake']

await prove({
  title: `${kills} kills`,
  seed,
  load: { programs: Number(options.programs), pauseMs: Number(options['pause-ms']) },
  isCountsOnly: options['counts-only'],
  injectFaults: killAll,
})

async function killAll(stage: Stage): Promise<FaultReport> {
  let left = kills
  const deaths: Record<PartName, number> = { api: 0, worker: 0, intake: 0 }
  const inFlight: Promised[][] = []
  const leased = leaseReader(stage)
  await Promise.all(
    partNames.map((name, place) => {
      const first = stage.parts[name]
      if (!first) throw new Error(`no ${name}`)
      return killRepeatedly(first, {
        name,
        seed: seed + place,
        livesMs: { least: 100, most: 3000 },
        start: () => stage.start(name),
        takeKill: () => left-- > 0,
        async onDeath() {
          deaths[name]++
          if (name === 'worker') inFlight.push(await leased())
          const done = deaths.api + deaths.worker + deaths.intake
          if (done % 50 === 0) say(`${done} kills`)
        },
      })
    }),
  )
  return {
    lines: [`killed: ${partNames.map((name) => `${name} ${deaths[name]}`).join(', ')}`],
    inFlight,
  }
}
