/** The sending network and the addressee of a job. */
export interface Whose {
  network: string
  addressee: string
  /** For the operator's own jobs: scheduled like others, but without a CPU budget. */
  isUnlimited?: boolean
}

interface Line<Job> {
  keys: readonly [string, string]
  jobs: Job[]
}

/** State of a network or an addressee that has waiting or running jobs. */
interface Share {
  jobs: number
  running: number
  /** Number of the last turn; 0 before the first. */
  turn: number
}

/**
 * A round-robin queue over networks and addressees. The next job is the one whose network and addressee have both waited
 * longest for a turn. A network with jobs for many addressees does not delay other networks, and an addressee with jobs
 * from many networks does not delay other addressees. At most `atOnce` jobs of each run at the same time.
 */
export class FairQueue<Job extends { whose: Whose }> {
  readonly #atOnce: number
  readonly #lines = new Map<string, Line<Job>>()
  readonly #shares = new Map<string, Share>()
  #turn = 0

  constructor({ atOnce }: { atOnce: number }) {
    this.#atOnce = atOnce
  }

  add(job: Job): void {
    const keys = keysOf(job.whose)
    for (const key of keys) {
      const share = this.#shares.get(key) ?? { jobs: 0, running: 0, turn: 0 }
      share.jobs++
      this.#shares.set(key, share)
    }
    const line = this.#lines.get(keys.join('\n')) ?? { keys, jobs: [] }
    line.jobs.push(job)
    this.#lines.set(keys.join('\n'), line)
  }

  /**
   * Removes the next job and counts it as running. Undefined if no job is waiting, or if the network or
   * addressee of every waiting job is at its limit.
   */
  take(): Job | undefined {
    let next: { line: Line<Job>; late: number; early: number } | undefined
    for (const line of this.#lines.values()) {
      const [network, addressee] = line.keys.map((key) => this.#shareOf(key)) as [Share, Share]
      if (network.running >= this.#atOnce || addressee.running >= this.#atOnce) continue
      const late = Math.max(network.turn, addressee.turn)
      const early = Math.min(network.turn, addressee.turn)
      if (!next || late < next.late || (late === next.late && early < next.early))
        next = { line, late, early }
    }
    const job = next?.line.jobs[0]
    if (!next || !job) return undefined
    this.#removeFromLine(next.line, job)
    this.#turn++
    for (const key of next.line.keys) {
      const share = this.#shareOf(key)
      share.running++
      share.turn = this.#turn
    }
    return job
  }

  /** Must be called when a job returned by `take` ends. */
  end(job: Job): void {
    for (const key of keysOf(job.whose)) {
      this.#shareOf(key).running--
      this.#release(key)
    }
  }

  /** Removes a waiting job. */
  remove(job: Job): void {
    const line = this.#lines.get(keysOf(job.whose).join('\n'))
    if (!line?.jobs.includes(job)) return
    this.#removeFromLine(line, job)
    for (const key of line.keys) this.#release(key)
  }

  /** Removes and returns all waiting jobs. */
  removeAll(): Job[] {
    const jobs = [...this.#lines.values()].flatMap((line) => [...line.jobs])
    for (const job of jobs) this.remove(job)
    return jobs
  }

  #removeFromLine(line: Line<Job>, job: Job): void {
    line.jobs.splice(line.jobs.indexOf(job), 1)
    if (line.jobs.length === 0) this.#lines.delete(line.keys.join('\n'))
  }

  #release(key: string): void {
    const share = this.#shareOf(key)
    share.jobs--
    if (share.jobs === 0) this.#shares.delete(key)
  }

  #shareOf(key: string): Share {
    const share = this.#shares.get(key)
    if (!share) throw new Error('the job is not in the queue')
    return share
  }
}

const keysOf = ({ network, addressee }: Whose): readonly [string, string] => [
  `from ${network}`,
  `for ${addressee}`,
]
