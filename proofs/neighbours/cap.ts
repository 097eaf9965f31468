import type { Answer, Attacker } from './attack.ts'

/** A cap of the installation, tested by one more request than it allows. */
export interface CapOptions {
  /** As usage.show calls it. */
  name: string
  value: number
  create(): Promise<Answer>
  /** How many there are, by SQL. */
  count(): Promise<number>
}

/** Shows that a cap holds: the API makes as many as are allowed, refuses one more, and goes on refusing beside an attack. */
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
        this.#attacker.faults.push(`${name}: number ${number} was answered ${status} ${error}`)
    }
    this.#expected = value
    if (await this.requireRefusal()) this.#attacker.refusals.push(`${name}: number ${value + 1}`)
  }

  /** Goes past the cap, by SQL that makes so many more. */
  async exceed(count: number, work: () => Promise<unknown>): Promise<void> {
    await work()
    this.#expected += count
  }

  /** One more is refused, and there are as many as the API and `exceed` have made. */
  async requireRefusal(): Promise<boolean> {
    const { name, create, count } = this.#options
    const { status, error } = await create()
    const isRefused = status === 422 && error === 'limit_exceeded'
    if (!isRefused)
      this.#attacker.faults.push(`${name}: one more was answered ${status} ${error}, and not limit_exceeded`)
    const found = await count()
    if (found !== this.#expected)
      this.#attacker.faults.push(`${name}: there are ${found} instead of ${this.#expected}`)
    return isRefused
  }
}
