import type { FastifyReply, FastifyRequest, FastifySchemaValidationError } from 'fastify'
import type { TObject } from 'typebox'
import type { Actor } from '../core/audit/record.ts'
import { PosternError } from '../platform/errors.ts'
import { describeFaults } from '../platform/http/faults.ts'
import { decodeParameters } from '../platform/http/parameters.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { refuseUnstorableText } from '../platform/http/storable.ts'
import { documentedBody, methodOf, schemaOf, takesIdempotencyKey } from './document.ts'
import { type AdminDeps, isMutation, type Mutation, type Query } from './operation.ts'
import { etagOf, ifMatchOf, perform } from './pipeline.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the OpenAPI document shows in place of the schema that is checked. */
    documentedBody?: TObject
  }
}

/** The operations as routes: from HTTP to `run` and back. */

// An endpoint with all its events is below 8 KiB. What has cause to be larger says so itself.
const ordinaryBodyLimitBytes = 64 * 1024

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
            config: { documentedBody: documentedBody(operation), allowsEmptyBody: true },
            preValidation: [requireBody(operation), ...checks],
            schemaErrorFormatter: bodyFault(operation),
            handler: (request, reply) => mutate(operation, request, reply, deps),
          }
        : {
            preValidation: checks,
            exposeHeadRoute: operation.hasHead ?? true,
            handler: (request, reply) => answerQuery(operation, request, reply, deps),
          }),
    })
  }
}

/** A DELETE or a rotation sent without any body lacks a reason, not a JSON object. */
const requireBody =
  ({ body }: Mutation) =>
  async (request: FastifyRequest): Promise<void> => {
    if (request.body !== undefined) return
    if (Object.keys(body).length > 0) {
      throw new PosternError('invalid_json', 'The body is empty; send a JSON object.')
    }
    request.body = {}
  }

const checks = [checkHeaders, decodeParameters, refuseUnstorableText]

async function checkHeaders({ headers }: FastifyRequest): Promise<void> {
  ifMatchOf(headers['if-match'])
  idempotencyKeyOf(headers['idempotency-key'])
}

function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && /^[\x21-\x7e]{1,255}$/.test(header)) return header
  throw new PosternError(
    'invalid_parameter',
    'Idempotency-Key must be 1 to 255 visible ASCII characters without spaces, given once.',
  )
}

/** A configuration that lacks fields is told apart from one that is wrong. */
const bodyFault =
  ({ isCompleteConfiguration }: Mutation) =>
  (faults: FastifySchemaValidationError[]): Error => {
    const missing = faults.flatMap(({ keyword, instancePath, params }) =>
      keyword === 'required' && instancePath === '' ? [`"${params['missingProperty']}"`] : [],
    )
    if (isCompleteConfiguration && missing.length > 0) {
      return new PosternError(
        'incomplete_configuration',
        `This takes the complete configuration, and the body lacks ${missing.join(', ')}. Send every field; what does not apply is null.`,
      )
    }
    return new PosternError('validation_failed', describeFaults(faults))
  }

async function mutate(
  operation: Mutation,
  request: FastifyRequest,
  reply: FastifyReply,
  deps: AdminDeps,
): Promise<FastifyReply> {
  const { headers, params, body, query } = request
  const answer = await perform(
    operation,
    {
      actor: actorOf(request),
      requestId: request.id,
      params: params as Record<string, unknown>,
      body: body as Record<string, unknown>,
      ifMatch: ifMatchOf(headers['if-match']),
      idempotencyKey: takesIdempotencyKey(operation)
        ? idempotencyKeyOf(headers['idempotency-key'])
        : undefined,
      isDryRun: (query as { dry_run?: boolean }).dry_run === true,
    },
    deps,
  )
  reply.status(answer.status)
  if (answer.etag !== null) reply.header('etag', answer.etag)
  if (answer.location !== null) reply.header('location', answer.location)
  if (answer.isRepeated) reply.header('idempotent-replayed', 'true')
  if (answer.body === null) return reply.send()
  return reply.type('application/json; charset=utf-8').send(answer.body)
}

async function answerQuery(
  operation: Query,
  { params, query }: FastifyRequest,
  reply: FastifyReply,
  { db, audit }: AdminDeps,
): Promise<FastifyReply> {
  const caller = new AbortController()
  reply.raw.once('close', () => caller.abort())
  const { signal } = caller
  const result = await operation.run({ db, audit, signal, params: params as never, query: query as never })
  if ('stream' in result)
    return reply.type(operation.contentType ?? 'application/octet-stream').send(result.stream)
  if (result.version !== undefined) reply.header('etag', etagOf(result.version))
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(result.answer))
}

function actorOf({ user, ip, headers }: FastifyRequest): Actor {
  if (user === null) throw new Error('an operation was reached without passing the door')
  return { userId: user.id, email: user.email, ip, userAgent: headers['user-agent'] ?? null }
}
