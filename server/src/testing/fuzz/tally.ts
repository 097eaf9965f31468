import { type ComplaintKind, complaintKinds } from './judge.ts'

/** What was asked and what came back, in numbers. */
export class Tally {
  requests = 0
  readonly #answers = new Map<string, Map<string, number>>()
  readonly #complaints = new Map<ComplaintKind, number>()

  answered(operation: string, status: number | string): void {
    this.requests++
    const statuses = this.#answers.get(operation) ?? new Map<string, number>()
    this.#answers.set(operation, statuses)
    statuses.set(String(status), (statuses.get(String(status)) ?? 0) + 1)
  }

  complained(kind: ComplaintKind): void {
    this.#complaints.set(kind, (this.#complaints.get(kind) ?? 0) + 1)
  }

  hasAnswered(operation: string): boolean {
    return this.#answers.has(operation)
  }

  /** How often each thing was found that must not be. */
  verdict(): string {
    return complaintKinds.map((kind) => `${kind} ${this.#complaints.get(kind) ?? 0}`).join(', ')
  }

  /** One line for each operation. */
  lines(): string[] {
    const sorted = [...this.#answers].sort(([one], [other]) => (one < other ? -1 : 1))
    return sorted.map(([operation, statuses]) => {
      const counts = [...statuses].sort().map(([status, count]) => `${status}: ${count}`)
      return `${operation.padEnd(26)} ${counts.join('  ')}`
    })
  }
}
