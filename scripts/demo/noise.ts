/** A deterministic value between 0 and 1. */
export function noise(n: number): number {
  const large = Math.sin(n * 12.9898 + 4.1414) * 43_758.5453
  return large - Math.floor(large)
}

export function pick<T>(from: readonly T[], n: number): T {
  const found = from[n % from.length]
  if (found === undefined) throw new Error('nothing to pick from')
  return found
}
