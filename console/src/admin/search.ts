import type { QueryOf } from '../api/client.ts'
import { day, defined, flag, one, type Params, score, text, whole } from '../components/search-params.ts'
import { messageListSearch } from '../resources/messages/message-list.tsx'
import { messageStatuses } from '../resources/messages/statuses.ts'

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

export const projectSearch = (
  params: Params,
): Omit<QueryOf<'projects.list'>, 'limit'> & Pick<QueryOf<'projects.volumes'>, 'range'> =>
  defined({
    q: text(params['q']),
    sort: one(...projectSorts)(params['sort']),
    locked: flag(params['locked']),
    plan_id: whole(params['plan_id']),
    min_score: score(params['min_score']),
    max_score: score(params['max_score']),
    over_limit: flag(params['over_limit']),
    /** Of the volume and the rates. */
    range: one('24h', '7d', '30d')(params['range']),
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

export const messageSearch = (params: Params) => ({
  ...messageListSearch(params),
  ...defined({ view: one('suppressed')(params['view']) }),
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
