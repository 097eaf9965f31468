import type { FastifyReply, FastifyRequest } from 'fastify'
import type { TObject } from 'typebox'
import type { Actor } from '../core/control/audit/record.ts'
import { refuseOtherMethods } from '../platform/http/allowed-methods.ts'
import {
  acceptsNoBody,
  bodyFault,
  checks,
  idempotencyKeyOf,
  ordinaryBodyLimitBytes,
  requireBody,
} from '../platform/http/request-checks.ts'
import { sendJson, sendResponse } from '../platform/http/response.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { etagOf, ifMatchOf } from '../platform/http/versions.ts'
import { namingMissingProject } from './missing-project.ts'
import { type AdminDeps, isMutation, type Mutation, type Query } from './operation.ts'
import { type MutationRequest, perform } from './pipeline.ts'
import { isDryRun } from './preview.ts'
import { alwaysNeedsReason, documentedBody } from './reason.ts'
import { methodOf, schemaOf } from './schema.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Shown in the OpenAPI document instead of the schema that is validated. */
    documentedBody?: TObject
    /** Documents that the request needs no body. */
    isBodyOptional?: boolean
    /** A POST that changes nothing. */
    isRead?: boolean
  }
}

/** Registers the operations as routes. Converts HTTP requests to calls to `run`, and results to HTTP responses. */
export function registerOperations(
  plane: HttpServer,
  operations: readonly (Mutation | Query)[],
  deps: AdminDeps,
): void {
  for (const operation of operations) {
    plane.route({
      method: methodOf(operation),
      url: operation.path,
      schema: schemaOf(operation),
      bodyLimit: ordinaryBodyLimitBytes,
      ...(isMutation(operation)
        ? {
            bodyLimit: operation.bodyLimitBytes ?? ordinaryBodyLimitBytes,
            config: {
              documentedBody: documentedBody(operation),
              isBodyOptional: acceptsNoBody(operation) && !alwaysNeedsReason(operation),
              allowsEmptyBody: true,
            },
            preValidation: [requireBody(operation), ...checks],
            schemaErrorFormatter: bodyFault(operation),
            handler: (request, reply) => mutate(operation, request, reply, deps),
          }
        : {
            ...(operation.body && bodyOptions(operation.body)),
            preValidation: operation.body
              ? [requireBody({ body: operation.body.fields }), ...checks]
              : checks,
            exposeHeadRoute: operation.hasHead ?? true,
            handler: (request, reply) => answerQuery(operation, request, reply, deps),
          }),
    })
  }
  refuseOtherMethods(
    plane,
    operations.map((operation) => ({
      method: methodOf(operation),
      url: operation.path,
      hasHead: isMutation(operation) || (operation.hasHead ?? true),
    })),
  )
}

const bodyOptions = ({ limitBytes }: NonNullable<Query['body']>) => ({
  bodyLimit: limitBytes,
  config: { allowsEmptyBody: true, isRead: true },
  schemaErrorFormatter: bodyFault({}),
})

async function mutate(
  operation: Mutation,
  request: FastifyRequest,
  reply: FastifyReply,
  deps: AdminDeps,
): Promise<FastifyReply> {
  const { headers, params, body, query } = request
  const mutation: MutationRequest = {
    actor: actorOf(request),
    requestId: request.id,
    params: params as Record<string, unknown>,
    body: body as Record<string, unknown>,
    ifMatch: ifMatchOf(headers['if-match']),
    idempotencyKey: idempotencyKeyOf(headers['idempotency-key']),
    isDryRun: isDryRun(query),
    secondFactorAt: request.user?.secondFactorAt ?? null,
  }
  const answer = await namingMissingProject(deps.db, params, () => perform(operation, mutation, deps))
  return sendResponse(reply, answer)
}

async function answerQuery(
  operation: Query,
  request: FastifyRequest,
  reply: FastifyReply,
  { db, mailDbFor, cells, returnPathKeys, domains, audit, caps, sendingRules }: AdminDeps,
): Promise<FastifyReply> {
  const { params, query, body } = request
  const caller = new AbortController()
  reply.raw.once('close', () => caller.abort())
  const { signal } = caller
  const result = await namingMissingProject(db, params, () =>
    operation.run({
      ...{ db, mailDbFor, cells, returnPathKeys, domains, audit, caps, sendingRules, signal },
      ...{ actorId: actorOf(request).id, requestId: request.id },
      params: params as never,
      query: query as never,
      body: body as never,
    }),
  )
  if ('stream' in result)
    return reply.type(operation.contentType ?? 'application/octet-stream').send(result.stream)
  if (result.version !== undefined) reply.header('etag', etagOf(result.version))
  reply.status(operation.status ?? 200)
  return sendJson(reply, JSON.stringify(result.answer))
}

function actorOf({ user, ip, headers }: FastifyRequest): Actor {
  if (user === null) throw new Error('an operation was reached without authentication')
  return { kind: 'person', id: user.id, email: user.email, ip, userAgent: headers['user-agent'] ?? null }
}
