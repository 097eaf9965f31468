/** Who sent a job's input, and for whom it is. */
export interface Whose {
  network: string
  addressee: string
  /** Of the operator's own: it has its turns like others, and no budget of processor time. */
  isUnlimited?: boolean
}

interface Line<Job> {
  keys: readonly [string, string]
  jobs: Job[]
}

/** What is known of a network or an addressee while it has jobs that wait or run. */
interface Share {
  jobs: number
  running: number
  /** Its last turn; 0: it had none. */
  turn: number
}

/**
 * A queue with turns for each network and each addressee (round-robin). The next job is one whose network and addressee
 * have both waited longest for a turn. So neither a network with jobs for many addressees nor an addressee with jobs from
 * many networks delays the others. Of each, `atOnce` jobs run at the same time.
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

  /** The next job, which runs from now on. Undefined: none waits, or those that wait have their share running. */
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
    this.#leaveLine(next.line, job)
    this.#turn++
    for (const key of next.line.keys) {
      const share = this.#shareOf(key)
      share.running++
      share.turn = this.#turn
    }
    return job
  }

  /** A job that `take` gave is over. */
  end(job: Job): void {
    for (const key of keysOf(job.whose)) {
      this.#shareOf(key).running--
      this.#forget(key)
    }
  }

  /** Takes out a job that waits. */
  remove(job: Job): void {
    const line = this.#lines.get(keysOf(job.whose).join('\n'))
    if (!line?.jobs.includes(job)) return
    this.#leaveLine(line, job)
    for (const key of line.keys) this.#forget(key)
  }

  /** All that wait, and are taken out. */
  removeAll(): Job[] {
    const jobs = [...this.#lines.values()].flatMap((line) => [...line.jobs])
    for (const job of jobs) this.remove(job)
    return jobs
  }

  #leaveLine(line: Line<Job>, job: Job): void {
    line.jobs.splice(line.jobs.indexOf(job), 1)
    if (line.jobs.length === 0) this.#lines.delete(line.keys.join('\n'))
  }

  #forget(key: string): void {
    const share = this.#shareOf(key)
    share.jobs--
    if (share.jobs === 0) this.#shares.delete(key)
  }

  #shareOf(key: string): Share {
    const share = this.#shares.get(key)
    if (!share) throw new Error('a job that is not in the queue')
    return share
  }
}

const keysOf = ({ network, addressee }: Whose): readonly [string, string] => [
  `from ${network}`,
  `for ${addressee}`,
]
