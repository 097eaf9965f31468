/**
 * A model of how reports change one recipient. It was written from the documentation and shares no code with the
 * service.
 */
export type ReportedKind = 'sent' | 'delivered' | 'deferred' | 'bounced' | 'failed' | 'complained'

export interface ModelReport {
  /** Two reports with the same id are identical. */
  id: string
  kind: ReportedKind
  /** RFC 3463. */
  code: string | null
}

export type ModelResult = 'applied' | 'repeated' | 'overtaken' | 'coalesced' | 'limited' | 'expired'

/** Each status that a report can change, and the kinds of reports that change it. */
const changes: Record<string, readonly ReportedKind[]> = {
  queued: ['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained'],
  sent: ['delivered', 'deferred', 'bounced', 'failed', 'complained'],
  deferred: ['delivered', 'deferred', 'bounced', 'failed', 'complained'],
  delivered: ['bounced', 'complained'],
}

const [coalescedHours, expiredHours, reportsAtMost] = [6, 14 * 24, 40]

export class ReportModel {
  status: string
  /** The worker has not recorded the handoff yet. */
  isQueued: boolean
  hoursSinceChange = 0
  readonly events: string[] = []
  readonly counts: Partial<Record<ReportedKind, number>> = {}
  suppression: 'bounce' | 'complaint' | null = null
  readonly accepted = new Set<string>()
  readonly #suppressOn: ReadonlySet<string>

  constructor(status: string, isQueued: boolean, suppressOn: ReadonlySet<string>) {
    this.status = status
    this.isQueued = isQueued
    this.#suppressOn = suppressOn
  }

  apply({ id, kind, code }: ModelReport): ModelResult {
    const isSameDelay =
      kind === 'deferred' && this.status === 'deferred' && this.hoursSinceChange < coalescedHours
    if (this.accepted.has(id)) return 'repeated'
    if (this.accepted.size >= reportsAtMost && kind !== 'complained') return 'limited'
    if (!this.isQueued && kind !== 'complained' && this.hoursSinceChange > expiredHours) return 'expired'
    if (!this.isQueued && isSameDelay) return 'coalesced'
    if (kind === 'complained') this.suppression = 'complaint'
    const isHandoff = this.isQueued && kind !== 'deferred'
    if (isHandoff) {
      this.isQueued = false
      this.#record('sent')
    }
    const isChange =
      changes[this.status]?.includes(kind) === true && !isSameDelay && (kind !== 'sent' || isHandoff)
    if (isChange || isHandoff) this.accepted.add(id)
    if (!isChange) return 'overtaken'
    this.status = kind
    this.hoursSinceChange = 0
    // A handoff has just recorded it.
    if (kind !== 'sent') this.#record(kind)
    if (kind === 'bounced' && code !== null && this.#suppressOn.has(code)) this.suppression ??= 'bounce'
    return 'applied'
  }

  #record(kind: ReportedKind): void {
    this.events.push(`message.${kind}`)
    this.counts[kind] = (this.counts[kind] ?? 0) + 1
  }
}
