import assert from 'node:assert/strict'
import type { Access } from '../../customer/authenticate-request.ts'
import type { CustomerOperation } from '../../customer/operation.ts'
import { allowedRoles } from '../../customer/roles.ts'
import { customerOperations } from '../../customer/routes.ts'
import { methodOf, routePathsOf } from '../../customer/schema.ts'
import { neededScopes } from '../../customer/scopes.ts'
import { successOfKind } from '../../platform/http/kinds.ts'
import type { CustomerActor } from '../fixtures/customer-actors.ts'
import type { Sent } from '../harness/raw-http.ts'
import { neverExisted, neverSent, spellings, type Verdict } from './path-targets.ts'
import { neededQuery, withQuery } from './queries.ts'

/** The customers' routes as the router has them, each with the operation behind it. */
export interface CustomerRoute {
  operation: CustomerOperation
  project: Access['project']
  method: string
  /** With /v1. */
  url: string
}

export const customerRoutesOf = (routes: readonly string[]): CustomerRoute[] =>
  routes
    .filter(
      (route) =>
        / \/v1\/(?!admin\b|auth\/|intake\/|inbound\/|forwards\/)/.test(route) && !route.startsWith('HEAD'),
    )
    .map((route) => {
      const [method = '', url = ''] = route.split(' ')
      for (const operation of customerOperations) {
        const place = routePathsOf(operation).find((one) => `/v1${one.url}` === url)
        if (place && methodOf(operation) === method) return { operation, project: place.project, method, url }
      }
      return assert.fail(`${route} is no operation of customer/routes.ts`)
    })

export function successOf(operation: CustomerOperation): number {
  if (operation.shape === 'custom') return operation.success.status
  return 'kind' in operation ? successOfKind[operation.kind] : 200
}

/** A request, and what its path speaks of. */
export interface CustomerCall extends Sent {
  about: string
  route: CustomerRoute
  /** What the path says of the project, and of the thing. */
  project: Verdict | 'of another'
  item: Verdict | 'of another'
}

export interface CustomerWorld {
  project: { id: number }
  otherProject: { id: number }
  makeOne: Record<string, (projectId: number) => Promise<number | string>>
  /** An address that both projects have suppressed. */
  suppressed: string
  /** What a body has instead of its operation's example. */
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

/** One route about every target: one parameter at a time, the others being what they should be. */
export async function customerCallsOf(route: CustomerRoute, world: CustomerWorld): Promise<CustomerCall[]> {
  const { url, method } = route
  const noun = itemNoun(url)
  const make = noun === undefined ? undefined : (world.makeOne[noun] ?? assert.fail(`nothing makes ${noun}`))
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
    call('as it should be', {}, 'found', 'found'),
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

/** What the two tables say, and nothing else that the code does. */
export function expectedOf(knocker: CustomerActor, { route, project, item }: CustomerCall): Expected {
  const { operation } = route
  if (knocker.refusal) return knocker.refusal
  if (knocker.scopes) {
    const needed = neededScopes[operation.id]
    if (needed === null || !knocker.scopes.includes(needed)) return expect(403, 'insufficient_scope')
  } else if (route.project === 'of key') {
    return expect(403, 'insufficient_role')
  }
  // A key of another project that names its own project is no stranger there.
  const isOwn = knocker.isForeign ? project === 'of another' : project === 'found'
  const isInside = route.project !== 'in path' || (isOwn && (knocker.scopes ?? knocker.role) !== undefined)
  const allowed: readonly string[] | 'signed in' = allowedRoles[operation.id]
  if (isInside && knocker.role && allowed !== 'signed in' && !allowed.includes(knocker.role)) {
    return expect(403, 'insufficient_role')
  }
  // Where bodies are large, a stranger is told before one is read.
  const isLarge = 'bodyLimitBytes' in operation && operation.bodyLimitBytes !== undefined
  if (isLarge && !isInside && project !== 'malformed') return expect(404, 'not_found')
  if (project === 'malformed' || item === 'malformed') return expect(400, 'invalid_parameter')
  // What is another's to most is the own of a key from there, where the path names no project.
  const own = knocker.isForeign && route.project === 'of key' ? 'of another' : 'found'
  const isThere = !/:id\b/.test(route.url) || (item === own && !(knocker.isForeign && own === 'found'))
  if (!isInside || !isThere) return expect(404, 'not_found')
  return expect(successOf(operation))
}

/** The answer without what tells one identifier from another. */
export const withoutId = (text: string, id: number | string): string => text.replaceAll(String(id), '#')

export { neverExisted, neverSent, pathOf }
