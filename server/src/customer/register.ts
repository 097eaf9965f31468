import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import Type, { type TObject } from 'typebox'
import { missingProject } from '../core/control/projects/projects.ts'
import { refuseOtherMethods, type SupportedRoute } from '../platform/http/allowed-methods.ts'
import {
  acceptsNoBody,
  bodyFault,
  checks,
  idempotencyKeyOf,
  ordinaryBodyLimitBytes,
  refuseManyValues,
  requireBody,
} from '../platform/http/request-checks.ts'
import { type HttpResponse, sendJson, sendResponse } from '../platform/http/response.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { validationMessage } from '../platform/http/validation-messages.ts'
import { etagOf, ifMatchOf } from '../platform/http/versions.ts'
import type { Caller, UserCaller } from './caller.ts'
import type { CustomerDeps, CustomerOperation, CustomOperation } from './operation.ts'
import { answerQuery, type MutationRequest, perform } from './pipeline.ts'
import { methodOf, routePathsOf, schemaOf } from './schema.ts'

/** Registers the operations as routes. Converts HTTP requests to calls to `run`, and results to HTTP responses. */
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
          isBodyOptional: operation.shape !== 'query' && acceptsNoBody(operation),
          ...documentedBodyOf(operation),
        },
        ...bodyChecks(operation),
        handler: (request, reply) => answer(operation, request, reply, deps),
      })
    }
  }
  refuseOtherMethods(plane, operations.flatMap(supportedRoutes))
}

/**
 * The caller of an unsupported method is authenticated but not authorised, because permissions are defined per operation.
 */
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
  operation.shape !== 'query' && (operation.bodyLimitBytes ?? 0) > ordinaryBodyLimitBytes

function bodyChecks(operation: CustomerOperation): Partial<RouteOptions> {
  if (operation.shape === 'query') return { bodyLimit: ordinaryBodyLimitBytes, preValidation: checks }
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
  const caller = callerOf(request)
  switch (operation.shape) {
    case 'mutation':
      return sendResponse(reply, await perform(operation, caller, mutationOf(request), deps))
    case 'query': {
      const { query } = request as { query: Record<string, unknown> }
      const { answer, version } = await answerQuery(
        operation,
        caller,
        { params: paramsOf(request), query },
        deps,
      )
      if (version !== undefined) reply.header('etag', etagOf(version))
      return sendJson(reply, JSON.stringify(answer))
    }
    case 'custom':
      return sendResponse(reply, await handleCustom(operation, caller, request, deps))
  }
}

function handleCustom(
  operation: CustomOperation,
  caller: Caller | UserCaller,
  request: FastifyRequest,
  deps: CustomerDeps,
): Promise<HttpResponse> {
  if (caller.kind === 'user') throw unauthenticatedCall()
  return operation.handle(
    {
      caller,
      projectId: caller.projectId,
      params: paramsOf(request) as never,
      query: request.query as never,
      body: request.body as never,
      idempotencyKey: idempotencyKeyOf(request.headers['idempotency-key']),
      requestId: request.id,
      trace: request.span?.spanContext(),
      ip: request.ip,
      faultOf(schema, value) {
        const isValid = request.compileValidationSchema(schema, 'body')
        return isValid(value) ? undefined : validationMessage(isValid.errors ?? [])
      },
    },
    deps,
  )
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

/** Excludes the project. Operations receive the authorised project instead. */
function paramsOf({ params }: FastifyRequest): Record<string, unknown> {
  const { project_id: _authorised, ...own } = params as Record<string, unknown>
  return own
}

/** A request from a caller without access is validated before it is rejected, so the order of errors reveals nothing. */
function callerOf({ customer, params }: FastifyRequest): Caller | UserCaller {
  if (customer === null) throw unauthenticatedCall()
  if (customer.kind === 'stranger') throw missingProject((params as { project_id: number }).project_id)
  return customer
}

const unauthenticatedCall = (): Error => new Error('an operation was reached without authentication')
