import type { QueryOf } from '../api/client.ts'
import { day, defined, one, type Params, text, whole } from '../components/search-params.ts'

/** The search parameters of the pages. Invalid values are dropped. */
export const rootSearch = (params: Params): { via?: 'console' } =>
  params['via'] === 'console' ? { via: 'console' } : {}

export const listSearch = (params: Params) => defined({ cursor: text(params['cursor']) })

export const attemptSearch = (params: Params): Omit<QueryOf<'customer.endpoints.attempts'>, 'limit'> =>
  defined({
    outcome: one('delivered', 'failed', 'given_up', 'gone')(params['outcome']),
    event_id: text(params['event_id']),
    cursor: text(params['cursor']),
  })

export const routingSearch = (params: Params) =>
  defined({ address: text(params['address']), cursor: text(params['cursor']) })

export const sendSearch = (params: Params) => defined({ message: text(params['message']) })

export const sendingCheckSearch = (params: Params) =>
  defined({ from: text(params['from']), to: text(params['to']) })

export const suppressionSearch = (params: Params) =>
  defined({ address: text(params['address']), cursor: text(params['cursor']) })

export const activitySearch = (params: Params) =>
  defined({
    user: whole(params['user']),
    from: day(params['from']),
    to: day(params['to']),
    cursor: text(params['cursor']),
  })
