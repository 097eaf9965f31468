import type { FastifyRequest } from 'fastify'
import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import type { Browser, SignIn, SignInResponse } from '../core/control/access/sign-in.ts'
import { PosternError } from '../platform/errors.ts'
import { decodeParameters } from '../platform/http/parameters.ts'
import { Problem } from '../platform/http/problem.ts'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { refuseUnstorableText } from '../platform/http/storable.ts'

/**
 * One operation of the signin plane: a session cookie in and out instead of a bearer token.
 *
 * Cookies go along with requests that another site makes in the user's browser, so a request that names
 * another origin is refused, besides SameSite=Strict on the cookie itself.
 */
export interface SignInOperation<
  Body extends TSchema = TSchema,
  Params extends TSchema = TSchema,
  Query extends TProperties = TProperties,
> {
  id: string
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  summary: string
  /** What the summary leaves out, in Markdown. */
  description: string
  /** False where it is there to open a session. */
  needsSession: boolean
  /** Text of the caller's goes into the database as it is. */
  storesText?: true
  /** With an example, as `examples: [...]`. */
  body?: Body
  params?: Params
  /** Query parameters; any other is refused. */
  query?: Query
  /** Absent: the answer is 204 with an empty body. */
  response?: TSchema
  /** When the success is given, as a sentence. */
  success: string
  /** Besides those that any operation here may end with: status → code and sentence. */
  failures?: Record<number, string>
  run(call: {
    signIn: SignIn
    browser: Browser
    body: Static<Body>
    params: Static<Params>
    query: Static<TObject<Query>>
  }): Promise<SignInResponse<unknown>>
}

export interface SignInDeps {
  signIn: SignIn
  publicOrigin: string
  addressLimit: RateLimit
}

export const tooManyRequests =
  '`rate_limited`: too many requests from this address; Retry-After says when to try again.'
export const tooManyAttempts = '`rate_limited`: too many attempts; Retry-After says when to try again.'

/** Only lends the schemas' types to `run`. */
export const signInOperation = <Body extends TSchema, Params extends TSchema, Query extends TProperties>(
  operation: SignInOperation<Body, Params, Query>,
): SignInOperation => operation as unknown as SignInOperation

export function registerSignIn(
  app: HttpServer,
  operations: readonly SignInOperation[],
  { signIn, publicOrigin, addressLimit }: SignInDeps,
): void {
  for (const operation of operations) {
    const { method, path, response, run } = operation
    app.route({
      method,
      url: `/v1${path}`,
      schema: schemaOf(operation),
      // Before the cookie is read: each look for a session asks the database.
      onRequest: ({ ip }) => addressLimit(networkOf(ip)),
      ...(operation.query ? { preValidation: decodeParameters } : {}),
      ...(operation.storesText ? { preValidation: refuseUnstorableText } : {}),
      handler: async (request, reply) => {
        refuseOtherOrigin(request, publicOrigin)
        const { body, params, query } = request
        const call = { signIn, browser: browserOf(request), body, params, query }
        const answer = await run(call as Parameters<typeof run>[0])
        for (const cookie of answer.cookies) reply.header('set-cookie', cookie)
        return response ? reply.send(answer.body) : reply.status(204).send()
      },
    })
  }
}

function schemaOf(operation: SignInOperation): object {
  const { id, summary, description, needsSession, body, params, query, response, success, failures } =
    operation
  const failed: Record<number, string> = {
    400: body
      ? '`invalid_json`, `invalid_parameter`: the request is not well formed.'
      : '`invalid_parameter`: the address of the request is not well formed.',
    401: '`unauthenticated`: nobody is signed in here, or the request comes from another site.',
    ...(body ? { 422: '`validation_failed`: a field is missing, unknown or not of its form.' } : {}),
    429: tooManyRequests,
    500: '`internal_error`: a fault on our side; X-Request-Id finds it in the log.',
    ...failures,
  }
  return {
    operationId: id,
    tags: ['auth'],
    summary,
    description,
    security: needsSession ? [{ session: [] }] : [],
    ...(body ? { body } : {}),
    ...(params ? { params } : {}),
    querystring: Type.Object(query ?? {}, { additionalProperties: false }),
    response: {
      ...(response ? { 200: answered(success, response) } : { 204: { type: 'null', description: success } }),
      ...Object.fromEntries(
        Object.entries(failed).map(([status, meaning]) => [status, answered(meaning, Problem)]),
      ),
    },
  }
}

const answered = (description: string, schema: TSchema) => ({
  description,
  content: { 'application/json': { schema } },
})

function refuseOtherOrigin({ headers }: FastifyRequest, publicOrigin: string): void {
  if (headers.origin !== undefined && headers.origin !== publicOrigin) {
    throw new PosternError('unauthenticated', `Sessions are used from ${publicOrigin} alone.`)
  }
}

const browserOf = ({ headers, ip, id }: FastifyRequest): Browser => ({
  requestId: id,
  cookie: headers.cookie,
  address: ip,
  userAgent: headers['user-agent'],
})
