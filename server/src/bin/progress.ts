/**
 * A progress line on standard error, redrawn while a long command runs and erased at its end. Shown only on a terminal.
 */
export class Progress {
  readonly #what: string
  readonly #began = performance.now()
  #drawnAt = Number.NEGATIVE_INFINITY

  constructor(what: string) {
    this.#what = what
  }

  /** `of` is the total, if it is known. */
  readonly show = (done: number, of?: number): void => {
    const now = performance.now()
    if (!process.stderr.isTTY || now - this.#drawnAt < redrawMs) return
    this.#drawnAt = now
    process.stderr.write(`\r\x1b[K${lineOf(this.#what, done, of, now - this.#began)}`)
  }

  end(): void {
    if (process.stderr.isTTY && this.#drawnAt > 0) process.stderr.write('\r\x1b[K')
  }
}

const redrawMs = 100
const barWidth = 24

export function lineOf(what: string, done: number, of: number | undefined, passedMs: number): string {
  const seconds = Math.floor(passedMs / 1000)
  if (of === undefined || of === 0) return `${done} ${what} (${seconds} s)`
  const filled = Math.min(barWidth, Math.floor((done / of) * barWidth))
  return `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}] ${done} of ${of} ${what} (${seconds} s)`
}
