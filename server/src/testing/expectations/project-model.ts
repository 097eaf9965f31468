/**
 * A simple model of the documented behaviour of domains, routes and API keys: a project is three lists, and each act
 * transforms one state into the next. It shares no code with the service.
 */
export interface ModelState {
  domains: readonly ModelDomain[]
  routes: readonly ModelRoute[]
  keys: readonly ModelKey[]
}

export interface ModelDomain {
  id: number
  name: string
  mta_provider: string
  version: number
}

export interface RouteFields {
  domain_id: number
  match: 'address' | 'catch_all'
  address: string | null
  action: string
  endpoint_id: null
  forward_to: string | null
  is_active: boolean
}

export type ModelRoute = RouteFields & { id: number; version: number }

export interface KeyFields {
  name: string
  domain_id: number | null
}

export type ModelKey = KeyFields & { id: number; version: number }

export interface DomainEdit {
  name?: string
  mta_provider?: string
  preserve_local_parts?: boolean
  route_replacements?: { route_id: number; address: string }[]
}

interface Aimed {
  id: number
  /** The version in If-Match. */
  ifMatch?: number
  isDryRun?: boolean
}

export type Act =
  | { kind: 'domains.list' | 'routing.list' | 'api-keys.list' }
  | { kind: 'domains.show' | 'routing.show'; id: number }
  | { kind: 'domains.create'; body: { name: string; mta_provider: string } }
  | ({ kind: 'domains.edit'; body: DomainEdit } & Aimed)
  | { kind: 'routing.create'; body: RouteFields }
  | ({ kind: 'routing.edit'; body: RouteFields } & Aimed)
  | { kind: 'api-keys.create'; body: KeyFields }
  | ({ kind: 'api-keys.edit'; body: KeyFields } & Aimed)
  | ({ kind: 'domains.delete' | 'routing.delete' | 'api-keys.delete' } & Aimed)

type Thing = ModelDomain | ModelRoute | ModelKey

export interface Expected {
  status: number
  /** The possible error codes of a rejected request: if several rules are violated, any of them may be reported. */
  errors: readonly string[]
  /** The resource after a successful request, or the list. */
  shown: Thing | readonly Thing[] | null
  /** The next state; the same object if nothing changed. */
  next: ModelState
  moves: { id: number; before: string; after: string }[]
}

/** `madeId` is the id that the service assigned to the created resource. */
export function perform(state: ModelState, act: Act, madeId = 0): Expected {
  const expected = performed(state, act, madeId)
  if (!('isDryRun' in act) || !act.isDryRun || expected.errors.length > 0) return expected
  return { status: 200, errors: [], shown: null, next: state, moves: [] }
}

function performed(state: ModelState, act: Act, madeId: number): Expected {
  switch (act.kind) {
    case 'domains.list':
      return shows(state, newestFirst(state.domains))
    case 'routing.list':
      return shows(state, newestFirst(state.routes))
    case 'api-keys.list':
      return shows(state, newestFirst(state.keys))
    case 'domains.show':
    case 'routing.show': {
      const all: readonly Thing[] = act.kind === 'domains.show' ? state.domains : state.routes
      const found = all.find(({ id }) => id === act.id)
      return found ? shows(state, found) : refuses(state, 404, ['not_found'])
    }
    case 'domains.create':
      return createDomain(state, act.body, madeId)
    case 'routing.create':
      return createRoute(state, act.body, madeId)
    case 'api-keys.create':
      return createKey(state, act.body, madeId)
    case 'domains.edit':
      return aimed(state, state.domains, act, (domain) => editDomain(state, domain, act.body))
    case 'routing.edit':
      return aimed(state, state.routes, act, (route) => editRoute(state, route, act.body))
    case 'api-keys.edit':
      return aimed(state, state.keys, act, (key) => editKey(state, key, act.body))
    case 'domains.delete':
      return aimed(state, state.domains, act, (domain) => deleteDomain(state, domain))
    case 'routing.delete':
      return aimed(state, state.routes, act, ({ id }) =>
        removes({ ...state, routes: without(state.routes, id) }),
      )
    case 'api-keys.delete':
      return aimed(state, state.keys, act, ({ id }) => removes({ ...state, keys: without(state.keys, id) }))
  }
}

function aimed<T extends Thing>(
  state: ModelState,
  among: readonly T[],
  { id, ifMatch }: Aimed,
  act: (thing: T) => Expected,
): Expected {
  const thing = among.find((one) => one.id === id)
  if (!thing) return refuses(state, 404, ['not_found'])
  if (ifMatch !== undefined && ifMatch !== thing.version) return refuses(state, 412, ['stale_resource'])
  return act(thing)
}

function createDomain(state: ModelState, body: { name: string; mta_provider: string }, id: number): Expected {
  const domain = { id, ...body, name: body.name.toLowerCase(), version: 1 }
  if (state.domains.some(({ name }) => name === domain.name)) return refuses(state, 409, ['already_exists'])
  return makes({ ...state, domains: [...state.domains, domain] }, domain)
}

function editDomain(state: ModelState, before: ModelDomain, body: DomainEdit): Expected {
  const name = (body.name ?? before.name).toLowerCase()
  const routes = state.routes.filter((route) => route.domain_id === before.id && route.match === 'address')
  const moves = movesOf(before.name, name, routes, body)
  const wouldCircle =
    name !== before.name &&
    state.routes.some(
      ({ domain_id, forward_to }) =>
        domain_id === before.id && (forward_to ?? '').toLowerCase().endsWith(`@${name}`),
    )
  const errors = [
    ...(body.name === undefined && body.mta_provider === undefined ? ['validation_failed'] : []),
    ...(state.domains.some((other) => other.id !== before.id && other.name === name)
      ? ['already_exists']
      : []),
    ...(moves === undefined || wouldCircle ? ['address_routes_unresolved'] : []),
  ]
  if (errors.length > 0 || moves === undefined) return refuses(state, 0, errors)
  const mta_provider = body.mta_provider ?? before.mta_provider
  const after = { ...before, name, mta_provider, version: before.version + 1 }
  const moved = new Map(moves.map((move) => [move.id, move.after]))
  const next = {
    ...state,
    domains: swap(state.domains, after),
    routes: state.routes.map((route) => {
      const address = moved.get(route.id)
      return address === undefined ? route : { ...route, address, version: route.version + 1 }
    }),
  }
  return { status: 200, errors: [], shown: after, next, moves }
}

/** Returns undefined if the request does not cover every address route. */
function movesOf(
  oldName: string,
  name: string,
  routes: readonly ModelRoute[],
  { preserve_local_parts: keeps = false, route_replacements: given }: DomainEdit,
): Expected['moves'] | undefined {
  if (keeps && given) return undefined
  if (name === oldName) return given && given.length > 0 ? undefined : []
  if (routes.length > 0 && !keeps && !given) return undefined
  const wanted = keeps
    ? routes.map(({ id, address }) => ({ route_id: id, address: `${address?.split('@')[0]}@${name}` }))
    : (given ?? [])
  const addresses = wanted.map(({ address }) => address.toLowerCase())
  const isWhole =
    wanted.length === routes.length &&
    routes.every(({ id }) => wanted.some(({ route_id }) => route_id === id)) &&
    new Set(addresses).size === addresses.length &&
    addresses.every((address) => address.split('@')[1] === name)
  if (!isWhole) return undefined
  return newestFirst(routes)
    .reverse()
    .map(({ id, address }) => ({
      id,
      before: address ?? '',
      after: wanted.find(({ route_id }) => route_id === id)?.address.toLowerCase() ?? '',
    }))
}

const deleteDomain = (state: ModelState, { id }: ModelDomain): Expected =>
  [...state.routes, ...state.keys].some(({ domain_id }) => domain_id === id)
    ? refuses(state, 409, ['in_use'])
    : removes({ ...state, domains: without(state.domains, id) })

function routeErrors(state: ModelState, route: RouteFields, id?: number): string[] {
  const domain = state.domains.find((one) => one.id === route.domain_id)
  const isUnder = (address: string | null) => address?.split('@')[1] === domain?.name
  const isWrong =
    !domain || (route.address !== null && !isUnder(route.address)) || isUnder(route.forward_to ?? '@')
  const isSecond = state.routes.some(
    (other) => other.id !== id && other.domain_id === route.domain_id && other.address === route.address,
  )
  return [...(isWrong ? ['validation_failed'] : []), ...(isSecond ? ['already_exists'] : [])]
}

const plain = (body: RouteFields): RouteFields => ({ ...body, address: body.address?.toLowerCase() ?? null })

function createRoute(state: ModelState, body: RouteFields, id: number): Expected {
  const route = { id, ...plain(body), version: 1 }
  const errors = routeErrors(state, route)
  if (errors.length > 0) return refuses(state, 0, errors)
  return makes({ ...state, routes: [...state.routes, route] }, route)
}

function editRoute(state: ModelState, before: ModelRoute, body: RouteFields): Expected {
  const after = { ...before, ...plain(body) }
  const errors = routeErrors(state, after, before.id)
  if (errors.length > 0) return refuses(state, 0, errors)
  if (isSame(before, after)) return shows(state, before)
  after.version++
  return { ...shows(state, after), next: { ...state, routes: swap(state.routes, after) } }
}

const isUnbound = (state: ModelState, { domain_id }: KeyFields): boolean =>
  domain_id !== null && !state.domains.some(({ id }) => id === domain_id)

function createKey(state: ModelState, body: KeyFields, id: number): Expected {
  if (isUnbound(state, body)) return refuses(state, 0, ['validation_failed'])
  const key = { id, ...body, version: 1 }
  return makes({ ...state, keys: [...state.keys, key] }, key)
}

function editKey(state: ModelState, before: ModelKey, body: KeyFields): Expected {
  if (isUnbound(state, body)) return refuses(state, 0, ['validation_failed'])
  const after = { ...before, ...body }
  if (isSame(before, after)) return shows(state, before)
  after.version++
  return { ...shows(state, after), next: { ...state, keys: swap(state.keys, after) } }
}

const isSame = (one: object, other: object): boolean => JSON.stringify(one) === JSON.stringify(other)

const shows = (state: ModelState, shown: Expected['shown']): Expected => ({
  status: 200,
  errors: [],
  shown,
  next: state,
  moves: [],
})
const makes = (next: ModelState, shown: Thing): Expected => ({ ...shows(next, shown), status: 201 })
const removes = (next: ModelState): Expected => ({ ...shows(next, null), status: 204 })
/** If `status` is 0, the error code determines the status: 409 or 422. */
const refuses = (state: ModelState, status: number, errors: string[]): Expected => ({
  ...shows(state, null),
  status,
  errors,
})

const newestFirst = <T extends Thing>(things: readonly T[]): T[] => [...things].sort((a, b) => b.id - a.id)
const without = <T extends Thing>(things: readonly T[], id: number): T[] =>
  things.filter((thing) => thing.id !== id)
const swap = <T extends Thing>(things: readonly T[], after: T): T[] =>
  things.map((thing) => (thing.id === after.id ? after : thing))
