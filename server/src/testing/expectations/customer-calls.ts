import assert from 'node:assert/strict'
import type { Access } from '../../customer/authenticate-request.ts'
import type { CustomerOperation } from '../../customer/operation.ts'
import { customerOperations } from '../../customer/routes.ts'
import { methodOf, routePathsOf } from '../../customer/schema.ts'
import type { CustomerActor } from '../fixtures/customer-actors.ts'
import type { Sent } from '../harness/raw-http.ts'
import { type ExpectedOperation, expectedCustomerOperations, isAllowed } from './customer-operations.ts'
import { neverExisted, neverSent, spellings, type Verdict } from './path-targets.ts'
import { neededQuery, withQuery } from './queries.ts'

/** The router's customer routes, each with its operation and expectations. */
export interface CustomerRoute {
  operation: CustomerOperation
  expected: ExpectedOperation
  project: Access['project']
  method: string
  /** With /v1. */
  url: string
}

export const customerRoutesOf = (routes: readonly string[]): CustomerRoute[] =>
  routes
    .filter(
      (route) =>
        / \/v1\/(?!admin\b|auth\/|intake\/|inbound\/|forwards\/|installation\b)/.test(route) &&
        !route.startsWith('HEAD'),
    )
    .map((route) => {
      const [method = '', url = ''] = route.split(' ')
      for (const operation of customerOperations) {
        const path = routePathsOf(operation).find((one) => `/v1${one.url}` === url)
        if (!path || methodOf(operation) !== method) continue
        const expected = expectedCustomerOperations[operation.id] ?? assert.fail(operation.id)
        return { operation, expected, project: path.project, method, url }
      }
      return assert.fail(`${route} is not in customer/routes.ts`)
    })

/** A request, and whether its path names an existing project and resource. */
export interface CustomerCall extends Sent {
  about: string
  route: CustomerRoute
  project: Verdict | 'of another'
  item: Verdict | 'of another'
}

export interface CustomerWorld {
  project: { id: number }
  otherProject: { id: number }
  makeOne: Record<string, (projectId: number) => Promise<number | string>>
  /** An address that both projects have suppressed. */
  suppressed: string
  /** Overrides for the operation's example body. */
  changes: Partial<Record<CustomerOperation['id'], () => object>>
}

const pathOf = (url: string, params: Record<string, string | number>): string =>
  url.replaceAll(/:(\w+)/g, (_, name: string) => String(params[name]))

export const itemNoun = (url: string): string | undefined => /([^/]+)\/:id/.exec(url)?.[1]

export function bodyOf(
  { operation, method }: CustomerRoute,
  { changes }: Pick<CustomerWorld, 'changes'>,
): Pick<Sent, 'headers' | 'body'> {
  if (method === 'GET' || !('example' in operation)) return {}
  const body = { ...operation.example, ...changes[operation.id]?.() }
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

/** The requests to one route: every value of each parameter, with valid values for the others. */
export async function customerCallsOf(route: CustomerRoute, world: CustomerWorld): Promise<CustomerCall[]> {
  const { url, method } = route
  const noun = itemNoun(url)
  const make =
    noun === undefined ? undefined : (world.makeOne[noun] ?? assert.fail(`no fixture creates ${noun}`))
  const own = {
    project_id: world.project.id,
    id: (await make?.(world.project.id)) ?? 0,
    address: world.suppressed,
  }
  const call = (
    about: string,
    params: object,
    project: CustomerCall['project'],
    item: CustomerCall['item'],
    query = '',
  ): CustomerCall => ({
    about: `${method} ${url} ${about}`,
    route,
    method,
    path: withQuery(pathOf(url, { ...own, ...params }) + neededQuery(route.operation), query),
    ...bodyOf(route, world),
    project,
    item,
  })
  const items: Record<string, readonly [string | number, CustomerCall['item']]> = make
    ? { "of another project's": [await make(world.otherProject.id), 'of another'], ...spellings(own.id) }
    : {}
  const projects: Record<string, readonly [string | number, CustomerCall['project']]> =
    route.project === 'in path'
      ? { "of another's": [world.otherProject.id, 'of another'], ...spellings(world.project.id) }
      : {}
  return [
    call('with valid values', {}, 'found', 'found'),
    call('with an unknown parameter', {}, 'found', 'malformed', '?unknown=1'),
    ...Object.entries(projects).map(([what, [project_id, verdict]]) =>
      call(`with project_id ${what}`, { project_id }, verdict, 'found'),
    ),
    ...Object.entries(items).map(([what, [id, verdict]]) =>
      call(`with id ${what}`, { id }, 'found', verdict),
    ),
  ]
}

export interface Expected {
  status: number
  error: string | null
}

const expect = (status: number, error: string | null = null): Expected => ({ status, error })

/** Derived from the table of expectations, not from the code. */
export function expectedOf(actor: CustomerActor, { route, project, item }: CustomerCall): Expected {
  const { expected } = route
  if (actor.refusal) return actor.refusal
  if (actor.scopes) {
    const { scope } = expected
    if (scope === undefined || !actor.scopes.includes(scope)) return expect(403, 'insufficient_scope')
  } else if (route.project === 'of key') {
    return expect(403, 'insufficient_role')
  }
  // Another project's key is authorised if the path names the key's own project.
  const isOwn = actor.isForeign ? project === 'of another' : project === 'found'
  const isInside = route.project !== 'in path' || (isOwn && (actor.scopes ?? actor.role) !== undefined)
  if (isInside && actor.role && !isAllowed(expected, actor.role)) {
    return expect(403, 'insufficient_role')
  }
  // An operation with large bodies rejects strangers before the body is read.
  if (expected.hasLargeBody && !isInside && project !== 'malformed') return expect(404, 'not_found')
  if (project === 'malformed' || item === 'malformed') return expect(400, 'invalid_parameter')
  // If the path names no project, another project's key can access the resources of its own project.
  const own = actor.isForeign && route.project === 'of key' ? 'of another' : 'found'
  const isThere = !/:id\b/.test(route.url) || (item === own && !(actor.isForeign && own === 'found'))
  if (!isInside || !isThere) return expect(404, 'not_found')
  return expect(expected.status)
}

/** The response text with the identifier replaced. */
export const withoutId = (text: string, id: number | string): string => text.replaceAll(String(id), '#')

export { neverExisted, neverSent, pathOf }
