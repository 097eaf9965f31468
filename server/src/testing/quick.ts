import assert from 'node:assert/strict'

const limitMs = 50

/**
 * Whether a parser is ever held up by one input. The machine may be busy with other things, so it is the thread's own
 * time that counts, and what took long is done again: what is slow is slow every time.
 */
export class Quickness {
  slowestMs = 0

  of<T>(input: string, read: () => T): T {
    const start = process.threadCpuUsage()
    const result = read()
    let ms = msSince(start)
    for (let again = 0; ms > limitMs && again < 3; again++) {
      const next = process.threadCpuUsage()
      read()
      ms = Math.min(ms, msSince(next))
    }
    this.#note(input, ms)
    return result
  }

  async ofAsync(input: string, read: () => Promise<unknown>): Promise<void> {
    let ms = Number.POSITIVE_INFINITY
    for (let again = 0; ms > limitMs && again < 4; again++) {
      const start = process.threadCpuUsage()
      await read()
      ms = Math.min(ms, msSince(start))
    }
    this.#note(input, ms)
  }

  #note(input: string, ms: number): void {
    this.slowestMs = Math.max(this.slowestMs, ms)
    assert.ok(ms <= limitMs, `${ms} ms for ${JSON.stringify(input.slice(0, 300))}`)
  }

  toString(): string {
    return `slowest ${this.slowestMs.toFixed(1)} ms`
  }
}

function msSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(start)
  return (user + system) / 1000
}
