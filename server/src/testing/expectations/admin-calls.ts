import assert from 'node:assert/strict'
import { isMutation } from '../../admin/operation.ts'
import { adminOperations } from '../../admin/routes.ts'
import { methodOf } from '../../admin/schema.ts'
import type { Sent } from '../harness/raw-http.ts'
import type { Access } from './access-table.ts'
import { spellings, type Targets, type Verdict } from './path-targets.ts'
import { neededQuery, withQuery } from './queries.ts'

/** A request to the administrative plane, and the response that an administrator gets. */
export interface Call extends Sent {
  about: string
  /** Whether the path does not belong to any operation. */
  isToNowhere?: boolean
  /** Whether the request is valid and not a dry run. */
  isGood: boolean
  status: number
  error: string | null
}

/** An address that both projects have suppressed. */
export const suppressedAddress = 'gone@example.net'

export interface World {
  project: { id: number }
  otherProject: { id: number }
  /**
   * Creates one resource of each kind, inside the project if the resource belongs to a project. Keyed by the path
   * segment before `:id`.
   */
  makeOne: Record<string, (projectId: number) => Promise<number | string>>
}

const refusals = {
  absent: { isGood: false, status: 404, error: 'not_found' },
  malformed: { isGood: false, status: 400, error: 'invalid_parameter' },
  unsupported: { isGood: false, status: 405, error: 'method_not_allowed' },
}

type Params = Record<string, string | number>

/** The requests to one route: every value of each parameter, with valid values for the others. */
export async function callsOf(
  route: string,
  { status, body }: Pick<Access, 'status' | 'body'>,
  world: World,
): Promise<Call[]> {
  const [method = '', url = ''] = route.split(' ')
  const { own, targets } = await targetsOf(url, world)
  const call = (about: string, params: Params, verdict: Verdict, query = ''): Call => ({
    about: `${route} ${about}`,
    method,
    path: withQuery(pathOf(url, params) + neededQuery(operationOf(method, url)), query),
    ...bodyOf(method, url, inProject(body, params['project_id'])),
    ...(verdict === 'found' ? { isGood: true, status, error: null } : refusals[verdict]),
  })
  const calls = Object.entries(targets).flatMap(([name, values]) =>
    Object.entries(values).map(([what, [value, verdict]]) =>
      call(`with ${name} ${what}`, { ...own, [name]: value }, verdict),
    ),
  )
  const good = call('with valid values', own, 'found')
  const preview = { ...call('as a dry run', own, 'found', '?dry_run=true'), isGood: false, status: 200 }
  return [
    ...calls,
    call('with an unknown parameter', own, 'malformed', '?unknown=1'),
    ...(isRead(operationOf(method, url)) ? [] : [preview]),
    ...(hasHead(route) ? [{ ...good, method: 'HEAD' }] : []),
    good,
  ]
}

/** An invalid project has no resources to refer to. */
const inProject = (body: Access['body'], projectId: string | number | undefined): object | undefined =>
  typeof body === 'function' ? body(typeof projectId === 'number' ? projectId : 0) : body

export const pathOf = (url: string, params: Params): string =>
  url.replaceAll(/:(\w+)/g, (_, name: string) => String(params[name]))

const operationOf = (method: string, url: string) =>
  adminOperations.find((one) => methodOf(one) === method && `/v1${one.path}` === url)

const isRead = (operation: ReturnType<typeof operationOf>): boolean =>
  operation !== undefined && !isMutation(operation)

/** Every read has a HEAD route, except where HEAD would do as much work as GET. */
export function hasHead(route: string): boolean {
  const [method = '', url = ''] = route.split(' ')
  const operation = operationOf(method, url)
  return method === 'GET' && (!operation || isMutation(operation) || operation.hasHead !== false)
}

/** The operation's example with these changes and, for a mutation, a reason; always a valid body. */
export function bodyOf(method: string, url: string, changes?: object): Pick<Sent, 'headers' | 'body'> {
  const operation = operationOf(method, url)
  if (!operation) return {}
  if (!isMutation(operation))
    return operation.body ? { headers: json, body: JSON.stringify(operation.body.example) } : {}
  const body = { ...operation.example, ...changes, reason: 'Asked for by the customer' }
  return { headers: json, body: JSON.stringify(body) }
}

export const json = { 'content-type': 'application/json' }

/** Bodies that every operation rejects, and the error that an authorised caller gets. */
export const badBodies = [
  { headers: json, body: ' '.repeat(10 * 1024 * 1024), status: 413, error: 'body_too_large' },
  { headers: json, body: '{"reason":', status: 400, error: 'invalid_json' },
  { headers: { 'content-type': 'text/plain' }, body: 'x', status: 415, error: 'unsupported_media_type' },
]

/** Each route gets its own resource, so deleting it does not affect the others. */
async function targetsOf(url: string, { project, otherProject, makeOne }: World) {
  const [, noun] = /([^/]+)\/:id/.exec(url) ?? []
  const isNested = url.includes(':project_id')
  const own: Params = { project_id: project.id, address: suppressedAddress }
  const targets: Record<string, Targets> = {}
  if (noun !== undefined) {
    const make = makeOne[noun] ?? assert.fail(`no fixture creates ${noun}`)
    const id = await make(project.id)
    own['id'] = id
    targets['id'] = {
      ...(isNested ? { "of another project's": [await make(otherProject.id), 'absent'] } : {}),
      ...spellings(id),
    }
  }
  if (isNested) {
    const verdict = noun === undefined ? 'found' : 'absent'
    targets['project_id'] = { "of another's": [otherProject.id, verdict], ...spellings(project.id) }
  }
  return { own, targets }
}

const commonMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const everyMethod = [...commonMethods, 'HEAD', 'OPTIONS', 'TRACE', 'QUERY']
const nowhere = [
  '/v1/admin',
  '/v1/admin/',
  '/v1/admin/anything',
  '/v1/admin/projects/1/any/thing',
  '/v1/admin/..',
]

/** Requests without an operation: unknown paths, and methods that a path does not accept. */
export function callsToNowhere(routes: readonly string[]): Call[] {
  const known = routes
    .filter((route) => route.includes(' /v1/admin/') && !route.startsWith('ANY'))
    .map((route) => pathOf(route, { project_id: 1, id: 1, address: suppressedAddress }))
  const addresses = new Set(known.map((route) => route.replace(/^\w+ /, '')))
  return [
    ...nowhere.flatMap((path) => everyMethod.map((method) => `${method} ${path}`)),
    ...[...addresses].flatMap((path) => commonMethods.map((method) => `${method} ${path}`)),
  ]
    .filter((route) => !known.includes(route))
    .map((route) => {
      const [method = '', path = ''] = route.split(' ')
      const refusal = addresses.has(path) ? refusals.unsupported : refusals.absent
      return { about: `${route}, which does not exist`, isToNowhere: true, method, path, ...refusal }
    })
}
