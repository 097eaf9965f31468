import { setTimeout as sleep } from 'node:timers/promises'
import { cpuSeconds, machineCpuSeconds } from './figures.ts'
import type { LoadResult } from './load.ts'
import type { Postern } from './postern.ts'

/** The measurement of one of the two compared programs. */
export interface Measured extends LoadResult {
  /** CPU time per counted item. */
  cpuMs: { api: number; postgres: number }
  /** The number of cores that other processes use. The higher it is, the less reliable the figures are. */
  otherCores: number
}

export interface Turn {
  api: Measured
  pgbench: Measured
}

export const ratioOf = ({ api, pgbench }: Turn): number => api.perSecond / pgbench.perSecond

/** `count` counts successes independently of the load generator. */
export async function measured(
  postern: Postern,
  run: () => Promise<LoadResult>,
  count: (result: LoadResult) => Promise<number>,
): Promise<Measured> {
  const [before, startedAt] = [await cpuUsed(postern), performance.now()]
  const result = await run()
  await sleep(1000)
  const [after, seconds] = [await cpuUsed(postern), (performance.now() - startedAt) / 1000]
  const counted = await count(result)
  const used = (who: keyof CpuUsed): number => after[who] - before[who]
  const cpuMs = { api: (used('api') * 1000) / counted, postgres: (used('postgres') * 1000) / counted }
  const otherLoad = used('machine') - used('api') - used('postgres') - used('bench')
  return { ...result, cpuMs, otherCores: Math.max(0, otherLoad / seconds) }
}

interface CpuUsed {
  api: number
  postgres: number
  /** CPU time of this process and the load generators it started. */
  bench: number
  machine: number
}

async function cpuUsed({ pids }: Postern): Promise<CpuUsed> {
  return {
    api: await cpuSeconds(pids.api),
    postgres: await cpuSeconds(pids.postgres, true),
    bench: await cpuSeconds(process.pid),
    machine: await machineCpuSeconds(),
  }
}
