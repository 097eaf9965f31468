import assert from 'node:assert/strict'

/** Set by `npm run prove:parsers`. Other runs do not assert speed (waiting.ts). */
const isSpeedAsserted = process.env['POSTERN_TEST_SPEED'] === '1'

/** A slow input is slow in every run, so the minimum of several measurements is used. */
const repetitions = isSpeedAsserted ? 3 : 0

/**
 * Measures the time a parser takes for one input, as the thread's CPU time, because other processes can keep the
 * machine busy. With `POSTERN_TEST_SPEED=1` an input above the limit fails the test; otherwise the slowest input is
 * only reported.
 */
export class ParserTiming {
  slowestMs = 0
  readonly #limitMs: number

  constructor(limitMs = 50) {
    this.#limitMs = limitMs
  }

  of<T>(input: string, read: () => T): T {
    const start = process.threadCpuUsage()
    const result = read()
    let ms = msSince(start)
    for (let again = 0; ms > this.#limitMs && again < repetitions; again++) {
      const next = process.threadCpuUsage()
      read()
      ms = Math.min(ms, msSince(next))
    }
    this.#note(input, ms)
    return result
  }

  async ofAsync<T>(input: string, read: () => Promise<T>): Promise<T> {
    const start = process.threadCpuUsage()
    const result = await read()
    let ms = msSince(start)
    for (let again = 0; ms > this.#limitMs && again < repetitions; again++) {
      const next = process.threadCpuUsage()
      await read()
      ms = Math.min(ms, msSince(next))
    }
    this.#note(input, ms)
    return result
  }

  #note(input: string, ms: number): void {
    this.slowestMs = Math.max(this.slowestMs, ms)
    if (isSpeedAsserted) assert.ok(ms <= this.#limitMs, `${ms} ms for ${JSON.stringify(input.slice(0, 300))}`)
  }

  toString(): string {
    return `slowest ${this.slowestMs.toFixed(1)} ms`
  }
}

function msSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(start)
  return (user + system) / 1000
}
