import type { Answer, Attacker } from './attack.ts'

/** One of the installation's caps, tested by requesting one object more than it allows. */
export interface CapOptions {
  /** The cap's name in the response of usage.show. */
  name: string
  value: number
  create(): Promise<Answer>
  /** The current number of objects, counted by SQL. */
  count(): Promise<number>
}

/**
 * Shows that a cap is enforced: the API creates objects up to the cap, rejects one more, and still rejects it during an
 * attack.
 */
export class Cap {
  readonly #attacker: Attacker
  readonly #options: CapOptions
  #expected = 0

  constructor(attacker: Attacker, options: CapOptions) {
    this.#attacker = attacker
    this.#options = options
  }

  async fill(): Promise<void> {
    const { name, value, create } = this.#options
    for (let number = 1; number <= value; number++) {
      const { status, error } = await create()
      if (status !== 201)
        this.#attacker.faults.push(`${name}: number ${number} got the response ${status} ${error}`)
    }
    this.#expected = value
    if (await this.requireRefusal()) this.#attacker.refusals.push(`${name}: number ${value + 1}`)
  }

  /** Exceeds the cap by creating this many more objects with SQL. */
  async exceed(count: number, work: () => Promise<unknown>): Promise<void> {
    await work()
    this.#expected += count
  }

  /** One more must be rejected, and the number of objects must match the number created by the API and `exceed`. */
  async requireRefusal(): Promise<boolean> {
    const { name, create, count } = this.#options
    const { status, error } = await create()
    const isRefused = status === 422 && error === 'limit_exceeded'
    if (!isRefused)
      this.#attacker.faults.push(
        `${name}: one more got the response ${status} ${error} instead of limit_exceeded`,
      )
    const found = await count()
    if (found !== this.#expected)
      this.#attacker.faults.push(`${name}: there are ${found} instead of ${this.#expected}`)
    return isRefused
  }
}
