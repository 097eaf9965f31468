import { type ViolationKind, violationKinds } from './check-response.ts'

/** Counts requests, response statuses and violations. */
export class Tally {
  requests = 0
  readonly #responses = new Map<string, Map<string, number>>()
  readonly #violations = new Map<ViolationKind, number>()

  recordResponse(operation: string, status: number | string): void {
    this.requests++
    const statuses = this.#responses.get(operation) ?? new Map<string, number>()
    this.#responses.set(operation, statuses)
    statuses.set(String(status), (statuses.get(String(status)) ?? 0) + 1)
  }

  recordViolation(kind: ViolationKind): void {
    this.#violations.set(kind, (this.#violations.get(kind) ?? 0) + 1)
  }

  hasResponse(operation: string): boolean {
    return this.#responses.has(operation)
  }

  /** The number of violations of each kind. */
  summary(): string {
    return violationKinds.map((kind) => `${kind} ${this.#violations.get(kind) ?? 0}`).join(', ')
  }

  /** One line per operation. */
  lines(): string[] {
    const sorted = [...this.#responses].sort(([one], [other]) => (one < other ? -1 : 1))
    return sorted.map(([operation, statuses]) => {
      const counts = [...statuses].sort().map(([status, count]) => `${status}: ${count}`)
      return `${operation.padEnd(26)} ${counts.join('  ')}`
    })
  }
}
