import type { QueryOf } from './api/client.ts'

/** The filters, order and page of a list, from the URL. Invalid values are dropped. */
type Params = Record<string, unknown>

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

/** A day in UTC, such as 2026-11-14. */
const day = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value))
    ? value
    : undefined

const dayMs = 86_400_000
const startOf = (date: string): string => new Date(Date.parse(date)).toISOString()
const endOf = (date: string): string => new Date(Date.parse(date) + dayMs).toISOString()

/** The URL contains days, and the last day is included; the API expects an exclusive end. */
export const periodOf = ({ from, to }: { from?: string | undefined; to?: string | undefined }) => ({
  ...(from && { from: startOf(from) }),
  ...(to && { to: endOf(to) }),
})

/** Omits undefined values, so that they are not in the URL. */
function defined<T extends object>(search: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(search).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }
}

export const listSearch = (params: Params) => defined({ cursor: text(params['cursor']) })

export const sendingSearch = (params: Params) =>
  defined({
    from: text(params['from']),
    to: text(params['to']),
    cursor: text(params['cursor']),
    /** The page of the firings. */
    firings: text(params['firings']),
  })

export const routingSearch = (params: Params) =>
  defined({ address: text(params['address']), cursor: text(params['cursor']) })

const projectSorts = ['-id', 'id', 'name', '-name', 'reputation_score', '-reputation_score'] as const

export const projectSearch = (params: Params): Omit<QueryOf<'projects.list'>, 'limit'> =>
  defined({
    q: text(params['q']),
    sort: one(...projectSorts)(params['sort']),
    locked: flag(params['locked']),
    plan_id: whole(params['plan_id']),
    min_score: score(params['min_score']),
    max_score: score(params['max_score']),
    over_limit: flag(params['over_limit']),
    cursor: text(params['cursor']),
  })

export const planSearch = (params: Params) =>
  defined({ is_active: flag(params['is_active']), cursor: text(params['cursor']) })

export const userSearch = (params: Params): Omit<QueryOf<'users.list'>, 'limit'> =>
  defined({
    q: text(params['q']),
    role: one('user', 'admin')(params['role']),
    is_active: flag(params['is_active']),
    cursor: text(params['cursor']),
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

export const messageSearch = (params: Params) =>
  defined({
    view: one('suppressed')(params['view']),
    recipient: text(params['recipient']),
    status: one(...messageStatuses)(params['status']),
    tag: text(params['tag']),
    cursor: text(params['cursor']),
  })

/** Messages of all projects. */
export const allMessageSearch = (params: Params) =>
  defined({
    recipient: text(params['recipient']),
    sender: text(params['sender']),
    status: one(...messageStatuses)(params['status']),
    from: day(params['from']),
    to: day(params['to']),
    cursor: text(params['cursor']),
  })

export const suppressionSearch = (params: Params) =>
  defined({ address: text(params['address']), cursor: text(params['cursor']) })

const outcomes = ['delivered', 'failed', 'given_up', 'gone'] as const

export const attemptSearch = (params: Params): Omit<QueryOf<'endpoints.attempts'>, 'limit'> =>
  defined({
    outcome: one(...outcomes)(params['outcome']),
    event_id: text(params['event_id']),
    cursor: text(params['cursor']),
  })

const resource = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[a-z_]{1,50}(:[0-9A-Za-z-]{1,50})?$/.test(value) ? value : undefined

export const auditSearch = (params: Params) =>
  defined({
    view: one('denials', 'lookups')(params['view']),
    project_id: whole(params['project_id']),
    actor: whole(params['actor']),
    operation: text(params['operation']),
    resource: resource(params['resource']),
    from: day(params['from']),
    to: day(params['to']),
    cursor: text(params['cursor']),
  })
