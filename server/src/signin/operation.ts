/**
 * Operations of the signin plane. They use a session cookie instead of a bearer token.
 *
 * A browser also attaches cookies to requests made by another site, so a request from another origin is rejected, in
 * addition to SameSite=Strict on the cookie itself.
 */
import type { FastifyRequest } from 'fastify'
import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import type { Accounts } from '../core/control/access/accounts.ts'
import type { SignInResponse } from '../core/control/access/better-auth-calls.ts'
import type { Browser } from '../core/control/access/browser.ts'
import type { ExternalSignIn } from '../core/control/access/external-sign-in.ts'
import type { Passkeys } from '../core/control/access/passkeys.ts'
import type { SecondFactors } from '../core/control/access/second-factors.ts'
import type { SignIn } from '../core/control/access/sign-in.ts'
import { PosternError } from '../platform/errors.ts'
import { refuseOtherMethods } from '../platform/http/allowed-methods.ts'
import { decodeParameters } from '../platform/http/parameters.ts'
import { Problem } from '../platform/http/problem.ts'
import { networkOf, type RateLimit } from '../platform/http/rate-limit.ts'
import type { HttpServer } from '../platform/http/server.ts'
import { refuseUnstorableText } from '../platform/http/storable.ts'

export interface SignInOperation<
  Body extends TSchema = TSchema,
  Params extends TSchema = TSchema,
  Query extends TProperties = TProperties,
> {
  id: string
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  summary: string
  /** Details that the summary does not include, in Markdown. */
  description: string
  /** False for an operation that creates a session. */
  needsSession: boolean
  /** The operation stores text from the caller unchanged. */
  storesText?: true
  /** Must contain an example, as `examples: [...]`. */
  body?: Body
  params?: Params
  /** Query parameters. Any other parameter is rejected. */
  query?: Query
  /** If absent, the response is 204 with an empty body. */
  response?: TSchema
  /** Describes the successful response, in a sentence. */
  success: string
  /** Errors in addition to those that all operations share: status → code and sentence. */
  failures?: Record<number, string>
  run(call: {
    signIn: SignIn
    accounts: Accounts
    secondFactors: SecondFactors
    passkeys: Passkeys
    external: ExternalSignIn
    browser: Browser
    body: Static<Body>
    params: Static<Params>
    query: Static<TObject<Query>>
  }): Promise<SignInResponse<unknown>>
}

export interface SignInDeps {
  signIn: SignIn
  accounts: Accounts
  secondFactors: SecondFactors
  passkeys: Passkeys
  external: ExternalSignIn
  publicOrigin: string
  addressLimit: RateLimit
}

export const tooManyRequests =
  '`rate_limited`: too many requests from this address. Try again after the time in `Retry-After`.'
export const tooManyAttempts = '`rate_limited`: too many attempts. Try again after the time in `Retry-After`.'

/** For changes to the account, in addition to the session. */
export const OptionalPassword = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 128,
    description:
      'Your password. Not required if the second factor was verified in this session within the last 10 minutes.',
  }),
)

/** Types the arguments of `run` according to the schemas. */
export const signInOperation = <Body extends TSchema, Params extends TSchema, Query extends TProperties>(
  operation: SignInOperation<Body, Params, Query>,
): SignInOperation => operation as unknown as SignInOperation

/** The redirect URI of an issuer. Its route is in routes.ts. */
export const callbackPath = '/auth/issuers/:issuer/callback'

/** RFC 7517 §5: the keys for programs that verify access tokens themselves. Its route is in routes.ts. */
export const jwksPath = '/auth/jwks.json'

export function registerSignIn(
  app: HttpServer,
  operations: readonly SignInOperation[],
  { publicOrigin, addressLimit, ...parts }: SignInDeps,
): void {
  for (const operation of operations) {
    const { method, path, response, run } = operation
    app.route({
      method,
      url: `/v1${path}`,
      schema: schemaOf(operation),
      // Checked before the cookie is read, because each session lookup queries the database.
      onRequest: ({ ip }) => addressLimit(networkOf(ip)),
      ...(operation.query ? { preValidation: decodeParameters } : {}),
      ...(operation.storesText ? { preValidation: refuseUnstorableText } : {}),
      handler: async (request, reply) => {
        refuseOtherOrigin(request, publicOrigin)
        const { body, params, query } = request
        const call = { ...parts, browser: browserOf(request), body, params, query }
        const result = await run(call as Parameters<typeof run>[0])
        for (const cookie of result.cookies) reply.header('set-cookie', cookie)
        return response ? reply.send(result.body) : reply.status(204).send()
      },
    })
  }
  refuseOtherMethods(
    app,
    [...operations, { method: 'GET', path: jwksPath }, { method: 'GET', path: callbackPath }].map(
      ({ method, path }) => ({
        method,
        url: `/v1${path}`,
        onRequest: ({ ip }) => addressLimit(networkOf(ip)),
      }),
    ),
  )
}

function schemaOf(operation: SignInOperation): object {
  const { id, summary, description, needsSession, body, params, query, response, success, failures } =
    operation
  const failureTexts: Record<number, string> = {
    400: body
      ? '`invalid_json`, `invalid_parameter`: the request is malformed.'
      : '`invalid_parameter`: a path or query parameter is malformed.',
    401: '`unauthenticated`: there is no session, or the request comes from another site.',
    ...(body ? { 422: '`validation_failed`: a field is missing, unknown or invalid.' } : {}),
    429: tooManyRequests,
    500: '`internal_error`: the server failed. Report the `X-Request-Id` of the response.',
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
      ...(response
        ? { 200: jsonResponse(success, response) }
        : { 204: { type: 'null', description: success } }),
      ...Object.fromEntries(
        Object.entries(failureTexts).map(([status, meaning]) => [status, jsonResponse(meaning, Problem)]),
      ),
    },
  }
}

const jsonResponse = (description: string, schema: TSchema) => ({
  description,
  content: { 'application/json': { schema } },
})

function refuseOtherOrigin({ headers }: FastifyRequest, publicOrigin: string): void {
  if (headers.origin !== undefined && headers.origin !== publicOrigin) {
    throw new PosternError('unauthenticated', `Session cookies are accepted only from ${publicOrigin}.`)
  }
}

export const browserOf = ({ headers, ip, id }: FastifyRequest): Browser => ({
  requestId: id,
  cookie: headers.cookie,
  address: ip,
  userAgent: headers['user-agent'],
})
