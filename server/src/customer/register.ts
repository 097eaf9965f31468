import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import Type, { type TObject } from 'typebox'
import { missingProject } from '../core/control/projects/projects.ts'
import { refuseOtherMethods, type SupportedRoute } from '../platform/http/allowed-methods.ts'
import {
  bodyFault,
  checks,
  idempotencyKeyOf,
  ordinaryBodyLimitBytes,
  refuseManyValues,
  requireBody,
} from '../platform/http/request-checks.ts'
import { asResponse, type HttpResponse, sendJson, sendResponse } from '../platform/http/response.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { validationMessage } from '../platform/http/validation-messages.ts'
import { etagOf, ifMatchOf } from '../platform/http/versions.ts'
import { boundDomain, type Caller, type UserCaller } from './caller.ts'
import type { CustomerDeps, CustomerOperation, CustomOperation } from './operation.ts'
import { answerQuery, type MutationRequest, perform, performForUser } from './pipeline.ts'
import { methodOf, routePathsOf, schemaOf } from './schema.ts'

/** The operations as routes: from HTTP to `run` and back. */
export function registerOperations(
  plane: HttpServer,
  operations: readonly CustomerOperation[],
  deps: CustomerDeps,
): void {
  for (const operation of operations) {
    for (const routePath of routePathsOf(operation)) {
      plane.route({
        method: methodOf(operation),
        url: routePath.url,
        schema: schemaOf(operation, routePath),
        config: {
          access: { operation: operation.id, project: routePath.project, isLarge: isLarge(operation) },
          allowsEmptyBody: true,
          ...documentedBodyOf(operation),
        },
        ...bodyChecks(operation),
        handler: (request, reply) => answer(operation, request, reply, deps),
      })
    }
  }
  refuseOtherMethods(plane, operations.flatMap(supportedRoutes))
}

/** The caller of an unsupported method is authenticated; permissions belong to operations, and there is none. */
const supportedRoutes = (operation: CustomerOperation): SupportedRoute[] =>
  routePathsOf(operation).map(({ url, project }) => ({
    method: methodOf(operation),
    url,
    config: { access: { operation: null, project: project === 'of key' ? project : 'none' } },
  }))

function documentedBodyOf(operation: CustomerOperation): { documentedBody?: TObject } {
  if (operation.shape !== 'custom' || !operation.documentedBody) return {}
  const { documentedBody: fields, example } = operation
  return { documentedBody: Type.Object(fields, { additionalProperties: false, examples: [example] }) }
}

const isLarge = (operation: CustomerOperation): boolean =>
  'bodyLimitBytes' in operation && (operation.bodyLimitBytes ?? 0) > ordinaryBodyLimitBytes

function bodyChecks(operation: CustomerOperation): Partial<RouteOptions> {
  if (methodOf(operation) === 'GET' || !('body' in operation)) {
    return { bodyLimit: ordinaryBodyLimitBytes, preValidation: checks }
  }
  return {
    bodyLimit: operation.bodyLimitBytes ?? ordinaryBodyLimitBytes,
    preValidation: [...(isLarge(operation) ? [refuseManyValues] : []), requireBody(operation), ...checks],
    schemaErrorFormatter: bodyFault(operation),
  }
}

async function answer(
  operation: CustomerOperation,
  request: FastifyRequest,
  reply: FastifyReply,
  deps: CustomerDeps,
): Promise<FastifyReply> {
  switch (operation.shape) {
    case 'mutation':
      return sendResponse(reply, await perform(operation, callerOf(request), mutationOf(request), deps))
    case 'query': {
      const { query } = request as { query: Record<string, unknown> }
      const asked = { params: paramsOf(request), query }
      const { answer, version } = await answerQuery(operation, callerOf(request), asked, deps)
      if (version !== undefined) reply.header('etag', etagOf(version))
      return sendJson(reply, JSON.stringify(answer))
    }
    case 'custom':
      return sendResponse(reply, await handleCustom(operation, request, reply, deps))
    case 'user mutation':
      return sendResponse(reply, await performForUser(operation, userOf(request), mutationOf(request), deps))
    case 'user query': {
      const { user } = userOf(request)
      const { answer } = await deps.everywhere.read((tx) =>
        operation.run({ tx, user, query: request.query as never }),
      )
      return sendResponse(reply, asResponse(200, answer))
    }
  }
}

function handleCustom(
  operation: CustomOperation,
  request: FastifyRequest,
  reply: FastifyReply,
  deps: CustomerDeps,
): Promise<HttpResponse> {
  const caller = callerOf(request)
  const { headers } = request
  return operation.handle(
    {
      caller,
      projectId: caller.projectId,
      domainId: boundDomain(caller),
      params: paramsOf(request) as never,
      query: request.query as never,
      body: request.body as never,
      idempotencyKey: idempotencyKeyOf(headers['idempotency-key']),
      requestId: request.id,
      trace: request.span?.spanContext(),
      ip: request.ip,
      userAgent: headers['user-agent'] ?? null,
      faultOf(schema, value) {
        const isValid = request.compileValidationSchema(schema, 'body')
        return isValid(value) ? undefined : validationMessage(isValid.errors ?? [])
      },
      // Made for those who ask for it: every answer ends in a close.
      get signal() {
        return signalOf(reply)
      },
    },
    deps,
  )
}

function signalOf({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  if (raw.closed) gone.abort()
  else raw.once('close', () => gone.abort())
  return gone.signal
}

const mutationOf = (request: FastifyRequest): MutationRequest => ({
  params: paramsOf(request),
  body: request.body as Record<string, unknown>,
  ifMatch: ifMatchOf(request.headers['if-match']),
  idempotencyKey: idempotencyKeyOf(request.headers['idempotency-key']),
  requestId: request.id,
  ip: request.ip,
  userAgent: request.headers['user-agent'] ?? null,
})

/** The project is not among them: operations get the one that the door has allowed. */
function paramsOf({ params }: FastifyRequest): Record<string, unknown> {
  const { project_id: _allowed, ...own } = params as Record<string, unknown>
  return own
}

/** Strangers come this far, so that they are told in its turn that there is no such project. */
function callerOf({ customer, params }: FastifyRequest): Caller {
  if (customer?.kind === 'stranger') throw missingProject((params as { project_id: number }).project_id)
  if (customer === null || customer.kind === 'user') throw unauthenticatedCall()
  return customer
}

function userOf({ customer }: FastifyRequest): UserCaller {
  if (customer?.kind !== 'user') throw unauthenticatedCall()
  return customer
}

const unauthenticatedCall = (): Error => new Error('an operation was reached without authentication')
