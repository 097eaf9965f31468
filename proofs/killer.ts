import { setTimeout as sleep } from 'node:timers/promises'
import type { Part, PartName } from '../bench/postern.ts'
import { Chance } from './random.ts'

/** Kills a process repeatedly, at random moments, and restarts it each time. */
export interface KillerOptions {
  name: PartName
  start(): Promise<Part>
  seed: number
  /** The time from when the process is ready until it is killed. */
  livesMs: { least: number; most: number }
  /** Whether to kill again; called once per kill. */
  takeKill(): boolean
  /** Called after each kill, before the restart. */
  onDeath(): Promise<void>
}

export async function killRepeatedly(first: Part, options: KillerOptions): Promise<Part> {
  const { start, seed, livesMs, takeKill, onDeath } = options
  const chance = new Chance(seed)
  let part = first
  for (;;) {
    await sleep(chance.between(livesMs.least, livesMs.most))
    if (!takeKill()) return part
    await part.kill()
    await onDeath()
    part = await start()
  }
}
