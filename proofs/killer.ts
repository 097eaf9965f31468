import { setTimeout as sleep } from 'node:timers/promises'
import type { Part, PartName } from '../bench/postern.ts'
import { Chance } from './random.ts'

/** Kills a process repeatedly, at random moments, and restarts it each time. */
export interface KillerOptions {
  name: PartName
  start(): Promise<Part>
  seed: number
  /** From its being ready to its death. */
  livesMs: { least: number; most: number }
  /** Whether there is another kill to be done; asked once for each. */
  takeKill(): boolean
  /** After a death, and before a new life. */
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
