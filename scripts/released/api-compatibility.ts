import { isDeepStrictEqual } from 'node:util'
import type { ApiContract, Content, ContractOperation, Parameter } from './api-contract.ts'
import { type Direction, SchemaComparison } from './schema-compatibility.ts'

/** Every change that can break a client of the released API. */
export function apiFaults(released: ApiContract, current: ApiContract): string[] {
  const schemas = new SchemaComparison(released.components.schemas, current.components.schemas)
  const schemes = Object.entries(released.components.securitySchemes)
    .filter(([name, scheme]) => !isDeepStrictEqual(scheme, current.components.securitySchemes[name]))
    .map(([name]) => `The security scheme ${name} is gone or different`)
  const compareAll = (kind: 'paths' | 'webhooks', compare: typeof operationFaults): string[] =>
    Object.entries(released[kind]).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, before]) => {
        const after = current[kind][path]?.[method]
        return after ? compare(before, after, schemas) : [`${before.operationId} (${method} ${path}) is gone`]
      }),
    )
  return [...schemes, ...compareAll('paths', operationFaults), ...compareAll('webhooks', eventFaults)]
}

function operationFaults(
  before: ContractOperation,
  after: ContractOperation,
  schemas: SchemaComparison,
): string[] {
  const id = before.operationId
  const [wasPreview, isPreview] = [before['x-dry-run-response'], after['x-dry-run-response']]
  return [
    ...(after.operationId === id ? [] : [`${id} has another operation id: ${after.operationId}`]),
    ...permissionFaults(before, after),
    ...parameterFaults(before, after, schemas),
    ...bodyFaults(before, after, schemas, 'request'),
    ...responseFaults(before, after, schemas),
    ...contentFaults(wasPreview?.content, isPreview?.content, schemas, 'response', `${id}: the preview`),
  ]
}

/** Postern sends the request, so what applies to responses applies to its body. */
function eventFaults(
  before: ContractOperation,
  after: ContractOperation,
  schemas: SchemaComparison,
): string[] {
  const headers = (before.parameters ?? [])
    .filter((one) => !findParameter(after, one))
    .map(({ name }) => `${before.operationId}: the header ${name} is gone`)
  return [...headers, ...bodyFaults(before, after, schemas, 'response')]
}

const findParameter = ({ parameters = [] }: ContractOperation, { name, in: place }: Parameter) =>
  parameters.find((one) => one.in === place && one.name === name)

function permissionFaults(before: ContractOperation, after: ContractOperation): string[] {
  const id = before.operationId
  const gone = (was: unknown[] = [], is: unknown[] = []): unknown[] =>
    was.filter((one) => !is.some((other) => isDeepStrictEqual(one, other)))
  const isOpen = !before.security?.length
  const schemes =
    isOpen && after.security?.length ? [{ caller: 'anyone' }] : gone(before.security, after.security)
  const allowed = (['x-roles', 'x-rights'] as const).flatMap((word) => {
    const [was, is] = [before[word], after[word]]
    if (was === undefined) return is === undefined ? [] : [`${id} has ${word} now`]
    return is === undefined ? [] : gone(was, is).map((one) => `${id} no longer allows ${one} (${word})`)
  })
  const fields = Object.entries(before['x-rights-fields'] ?? {}).flatMap(([right, was]) =>
    gone(was, after['x-rights-fields']?.[right] ?? []).map(
      (field) => `${id} no longer allows ${right} to change ${field}`,
    ),
  )
  return [
    ...schemes.map((scheme) => `${id} no longer allows ${JSON.stringify(scheme)}`),
    ...gone(after['x-scopes'], before['x-scopes']).map((scope) => `${id} needs the scope ${scope} now`),
    ...allowed,
    ...fields,
  ]
}

function parameterFaults(
  before: ContractOperation,
  after: ContractOperation,
  schemas: SchemaComparison,
): string[] {
  const place = ({ name }: Parameter) => `${before.operationId}: the parameter ${name}`
  const added = (after.parameters ?? [])
    .filter((one) => one.required && !findParameter(before, one)?.required)
    .map((one) => `${place(one)} is required now`)
  const kept = (before.parameters ?? []).flatMap((one) => {
    const now = findParameter(after, one)
    // The server rejects unknown parameters.
    if (!now) return [`${place(one)} is gone`]
    return schemas.compare({ before: one.schema, after: now.schema, direction: 'request', at: place(one) })
  })
  return [...added, ...kept]
}

function bodyFaults(
  before: ContractOperation,
  after: ContractOperation,
  schemas: SchemaComparison,
  direction: Direction,
): string[] {
  const [was, is] = [before.requestBody, after.requestBody]
  const at = `${before.operationId}: the body`
  if (!was) return is?.required ? [`${at} is required now`] : []
  if (!is) return [`${at} is gone`]
  return [
    ...(is.required && !was.required ? [`${at} is required now`] : []),
    ...contentFaults(was.content, is.content, schemas, direction, at),
  ]
}

/** Statuses of errors can be added and removed: the code in the body has the meaning. */
function responseFaults(
  before: ContractOperation,
  after: ContractOperation,
  schemas: SchemaComparison,
): string[] {
  return Object.entries(before.responses).flatMap(([status, was]) => {
    const at = `${before.operationId}: the response ${status}`
    const is = after.responses[status]
    if (!is) return Number(status) < 400 ? [`${at} is gone`] : []
    return [
      ...contentFaults(was.headers, is.headers, schemas, 'response', `${at}, header`),
      ...contentFaults(was.content, is.content, schemas, 'response', at),
    ]
  })
}

const contentFaults = (
  was: Content = {},
  is: Content = {},
  schemas: SchemaComparison,
  direction: Direction,
  at: string,
): string[] =>
  Object.entries(was).flatMap(([name, { schema }]) => {
    const now = is[name]
    const place = name === 'application/json' ? at : `${at} ${name}`
    return now
      ? schemas.compare({ before: schema ?? {}, after: now.schema ?? {}, direction, at: place })
      : [`${place} is gone`]
  })
