import type { QueryOf } from './api/client.ts'

/**
 * What an address says of a list: its filters, order and page. Whoever types nonsense into the address bar gets the
 * list without it.
 */
type Given = Record<string, unknown>

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : undefined
const flag = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined)
const whole = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
const score = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) ? Math.min(100, Math.max(0, value)) : undefined
const one =
  <T extends string>(...allowed: T[]) =>
  (value: unknown): T | undefined =>
    allowed.find((word) => word === value)

/** Leaves out what is undefined, so that it does not stand in the address. */
function said<T extends object>(search: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(search).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }
}

export const listSearch = (given: Given) => said({ cursor: text(given['cursor']) })

export const routingSearch = (given: Given) =>
  said({ address: text(given['address']), cursor: text(given['cursor']) })

const projectSorts = ['-id', 'id', 'name', '-name', 'reputation_score', '-reputation_score'] as const

export const projectSearch = (given: Given): Omit<QueryOf<'projects.list'>, 'limit'> =>
  said({
    q: text(given['q']),
    sort: one(...projectSorts)(given['sort']),
    locked: flag(given['locked']),
    plan_id: whole(given['plan_id']),
    min_score: score(given['min_score']),
    max_score: score(given['max_score']),
    over_limit: flag(given['over_limit']),
    cursor: text(given['cursor']),
  })

export const planSearch = (given: Given) =>
  said({ is_active: flag(given['is_active']), cursor: text(given['cursor']) })

export const userSearch = (given: Given): Omit<QueryOf<'users.list'>, 'limit'> =>
  said({
    q: text(given['q']),
    role: one('user', 'admin')(given['role']),
    is_active: flag(given['is_active']),
    cursor: text(given['cursor']),
  })

export const messageStatuses = [
  'scheduled',
  'queued',
  'sent',
  'deferred',
  'delivered',
  'bounced',
  'failed',
  'complained',
  'suppressed',
  'canceled',
] as const

export const messageSearch = (given: Given) =>
  said({
    view: one('suppressed')(given['view']),
    recipient: text(given['recipient']),
    status: one(...messageStatuses)(given['status']),
    tag: text(given['tag']),
    cursor: text(given['cursor']),
  })

const outcomes = ['delivered', 'failed', 'given_up', 'gone'] as const

export const attemptSearch = (given: Given): Omit<QueryOf<'endpoints.attempts'>, 'limit'> =>
  said({
    outcome: one(...outcomes)(given['outcome']),
    event_id: text(given['event_id']),
    cursor: text(given['cursor']),
  })

/** A day in UTC, such as 2026-11-14. */
const day = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value))
    ? value
    : undefined
const resource = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[a-z_]{1,50}(:[0-9A-Za-z-]{1,50})?$/.test(value) ? value : undefined

export const auditSearch = (given: Given) =>
  said({
    view: one('refusals')(given['view']),
    project_id: whole(given['project_id']),
    actor: whole(given['actor']),
    operation: text(given['operation']),
    resource: resource(given['resource']),
    from: day(given['from']),
    to: day(given['to']),
    cursor: text(given['cursor']),
  })
