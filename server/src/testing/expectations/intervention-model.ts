/**
 * A simple model of the documented behaviour of interventions and temporary overrides. It shares no code with the service.
 * Time passes only in whole hours, and every expiry is half an hour off the full hour, so the model needs no clock.
 */
export interface ModelIntervention {
  kind: string
  pace: number | null
  expiry: ModelExpiry | null
  endedBy: string | null
  /** For a gradual release: whether the mail that waited for it is still queued. */
  drains: 'waiting' | 'gone' | null
}

export interface ModelExpiry {
  /** Milliseconds, as sent, minus the time that the test let pass. */
  at: number
  /** Full hours until the expiry; negative if it is past. */
  hours: number
}

type Value = string | number | boolean | null

export interface ModelReversal {
  original: Value
  override: Value
  expiry: ModelExpiry
}

export const modelFields = ['allow_service_mta', 'admin_subscription_status', 'reputation_score'] as const
export type ModelField = (typeof modelFields)[number]

const hourMs = 3_600_000
const most = 20

export class InterventionModel {
  isLocked = false
  readonly values: Record<ModelField, Value> = {
    allow_service_mta: false,
    admin_subscription_status: null,
    reputation_score: 0,
  }
  readonly interventions: ModelIntervention[] = []
  readonly reversals = new Map<ModelField, ModelReversal>()
  /** Operation, main resource and related resources of each audit row. */
  readonly audit: string[] = []
  readonly events: string[] = []
  hasMail = false

  inForce(kind?: string): ModelIntervention[] {
    return this.interventions.filter(
      (one) => one.endedBy === null && (kind === undefined || one.kind === kind),
    )
  }

  /** What workers read: nothing, a hold, or the slowest pace. */
  get restriction(): string | null {
    if (this.inForce('hold').length > 0) return 'hold'
    const paces = this.inForce('pace').map(({ pace }) => Number(pace))
    return paces.length === 0 ? null : `pace ${Math.min(...paces)}`
  }

  create(kind: string, pace: number | null, expiry: ModelExpiry | null): string | undefined {
    if (this.inForce().length >= most) return 'limit_exceeded'
    this.#start(kind, pace, expiry)
    this.#record('interventions.create', ['intervention', ...this.#settle()])
    return undefined
  }

  edit(which: ModelIntervention, pace: number | null, expiry: ModelExpiry | null): string | undefined {
    if (which.endedBy !== null) return 'already_ended'
    if (which.pace === pace && which.expiry?.at === expiry?.at) return undefined
    Object.assign(which, { pace, expiry })
    this.#record('interventions.edit', ['intervention'])
    return undefined
  }

  end(which: ModelIntervention): string | undefined {
    if (which.endedBy !== null) return 'already_ended'
    this.#finish(which, 'administrator')
    this.#record('interventions.end', ['intervention', ...this.#settle()])
    return undefined
  }

  hold(): string | undefined {
    return this.#turn('hold', true)
  }

  release(): string | undefined {
    return this.#turn('release', false)
  }

  /** Without mail, no pace starts. */
  releaseGradually(pace: number): string | undefined {
    if (!this.hasMail) return this.release()
    const holds = this.inForce('hold').length
    if (this.inForce().length - holds >= most) return 'limit_exceeded'
    this.#lift('hold')
    this.#start('pace', pace, null, 'waiting')
    const resources = Array<string>(holds + 1).fill('intervention')
    this.#record('queue.release', holds > 0 ? ['queue', ...resources] : resources)
    return undefined
  }

  /** All queued mail is handed over. */
  handOver(): void {
    this.hasMail = false
    for (const one of this.inForce()) if (one.drains) one.drains = 'gone'
  }

  drain(): void {
    for (const one of this.inForce().filter(({ drains }) => drains === 'gone')) {
      this.#finish(one, 'drained')
      this.#record('interventions.drain', ['intervention'])
    }
  }

  #turn(act: string, isHeld: boolean): string | undefined {
    const was = this.inForce('hold').length > 0
    const changed = isHeld ? this.#impose('hold', null) : this.#lift('hold')
    if (typeof changed === 'string') return changed
    const resources = Array<string>(changed).fill('intervention')
    if (changed > 0) this.#record(`queue.${act}`, was === isHeld ? resources : ['queue', ...resources])
    return undefined
  }

  /** projects.edit with one field, or a lock, or both. */
  editProject(
    change: { isLocked?: boolean; field?: ModelField; value?: Value },
    expiry: ModelExpiry | null,
  ): string | undefined {
    const { isLocked, field, value = null } = change
    if (expiry && (isLocked === false || (isLocked !== true && field === undefined)))
      return 'validation_failed'
    const interventions =
      isLocked === undefined ? 0 : isLocked ? this.#impose('lock', expiry) : this.#lift('lock')
    if (typeof interventions === 'string') return interventions
    const moved = this.#settle().length > 0
    const isChanged = field !== undefined && this.values[field] !== value
    const reversal = field === undefined ? [] : this.#plan(field, value, expiry)
    if (field !== undefined) this.values[field] = value
    const resources = [
      ...(moved || isChanged ? ['project'] : []),
      ...Array<string>(interventions).fill('intervention'),
      ...reversal,
    ]
    if (resources.length > 0) this.#record('projects.edit', resources)
    return undefined
  }

  #plan(field: ModelField, value: Value, expiry: ModelExpiry | null): string[] {
    const prior = this.reversals.get(field)
    const isChanged = this.values[field] !== value
    const original = prior ? prior.original : this.values[field]
    if (!isChanged && (!prior || prior.expiry.at === expiry?.at)) return []
    if (expiry && original !== value) this.reversals.set(field, { original, override: value, expiry })
    else if (prior) this.reversals.delete(field)
    else return []
    return ['reversal']
  }

  deleteReversal(field: ModelField): void {
    this.reversals.delete(field)
    this.#record('reversals.delete', ['reversal'])
  }

  pass(hours: number): void {
    const expiries = [
      ...this.inForce().map(({ expiry }) => expiry),
      ...[...this.reversals.values()].map(({ expiry }) => expiry),
    ]
    for (const expiry of new Set(expiries)) {
      if (!expiry) continue
      expiry.at -= hours * hourMs
      expiry.hours -= hours
    }
  }

  /** What a worker does when it is not interrupted: at most `count` of the due changes, in their order. */
  expire(count: number): void {
    const isDue = ({ expiry }: { expiry: ModelExpiry | null }) => expiry !== null && expiry.hours < 0
    const byExpiry = (one: { expiry: ModelExpiry | null }, other: { expiry: ModelExpiry | null }) =>
      (one.expiry?.at ?? 0) - (other.expiry?.at ?? 0)
    let left = count
    for (const one of this.inForce().filter(isDue).sort(byExpiry)) {
      if (left-- <= 0) return
      this.#finish(one, 'expiry')
      this.#record('interventions.expire', ['intervention', ...this.#settle()])
    }
    const reversals = [...this.reversals].map(([field, reversal]) => ({ field, ...reversal }))
    for (const { field, original } of reversals.filter(isDue).sort(byExpiry)) {
      if (left-- <= 0) return
      this.values[field] = original
      this.reversals.delete(field)
      this.#record('projects.revert', ['project', 'reversal'])
    }
  }

  get due(): number {
    const past = (expiry: ModelExpiry | null) => expiry !== null && expiry.hours < 0
    return (
      this.inForce().filter(({ expiry }) => past(expiry)).length +
      [...this.reversals.values()].filter(({ expiry }) => past(expiry)).length
    )
  }

  #impose(kind: string, expiry: ModelExpiry | null): number | string {
    if (this.inForce(kind).some((one) => one.expiry?.at === expiry?.at)) return 0
    // Nothing keeps an administrator from stopping a project for good.
    if (expiry !== null && this.inForce().length >= most) return 'limit_exceeded'
    this.#start(kind, null, expiry)
    return 1
  }

  #start(
    kind: string,
    pace: number | null,
    expiry: ModelExpiry | null,
    drains: ModelIntervention['drains'] = null,
  ): void {
    this.interventions.push({ kind, pace, expiry, endedBy: null, drains })
    this.events.push(`project.intervened ${kind}`)
  }

  #finish(which: ModelIntervention, by: string): void {
    which.endedBy = by
    this.events.push(`project.reinstated ${which.kind}`)
  }

  #lift(kind: string): number {
    const all = this.inForce(kind)
    for (const one of all) this.#finish(one, 'administrator')
    return all.length
  }

  /** The project is locked while a lock is in force. Returns the changed resource. */
  #settle(): string[] {
    const isLocked = this.inForce('lock').length > 0
    if (isLocked === this.isLocked) return []
    this.isLocked = isLocked
    this.events.push(isLocked ? 'project.locked' : 'project.unlocked')
    return ['project']
  }

  #record(operation: string, [main = '', ...related]: string[]): void {
    this.audit.push([operation, main, ...related].join(' '))
  }
}
