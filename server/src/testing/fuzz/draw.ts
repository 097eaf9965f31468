import type { Chance } from '../harness/random.ts'

/** The seed of one part, so that a part can be repeated without running the parts before it. */
export function seedOf(seed: number, part: number): number {
  let mixed = Math.imul((seed ^ 0x9e3779b9) >>> 0, 0x85ebca6b) ^ Math.imul(part + 1, 0xc2b2ae35)
  mixed ^= mixed >>> 15
  mixed = Math.imul(mixed, 0x27d4eb2f)
  return (mixed ^ (mixed >>> 13)) >>> 0
}

/** Picks one choice by weight. */
export function weighted<T>(chance: Chance, choices: readonly (readonly [weight: number, choice: T])[]): T {
  const total = choices.reduce((sum, [weight]) => sum + weight, 0)
  let left = chance.next() * total
  for (const [weight, choice] of choices) {
    left -= weight
    if (left < 0) return choice
  }
  const last = choices.at(-1)
  if (!last) throw new Error('nothing to choose from')
  return last[1]
}

export function shuffled<T>(chance: Chance, items: readonly T[]): T[] {
  const rest = [...items]
  for (let n = rest.length - 1; n > 0; n--) {
    const other = chance.below(n + 1)
    const [one, two] = [rest[n] as T, rest[other] as T]
    rest[n] = two
    rest[other] = one
  }
  return rest
}

/** A random subset in random order. */
export const someOf = <T>(chance: Chance, items: readonly T[]): T[] =>
  shuffled(chance, items).slice(0, chance.below(items.length + 1))

/** An id that does not exist: far above the ids of a run, or at a boundary of the number range. */
export const absentId = (chance: Chance): number =>
  chance.pick([0, Number.MAX_SAFE_INTEGER, 4_000_000_000 + chance.below(1_000_000_000), 2 ** 31, 2 ** 32])
