import type { FastifyRequest } from 'fastify'
import Type, { type Static, type TSchema } from 'typebox'
import type { Answer, Browser, SignIn } from '../core/access/sign-in.ts'
import { PosternError } from '../platform/errors.ts'
import type { HttpServer } from '../platform/http/server.ts'

/**
 * One operation of the signin plane: a session cookie in and out instead of a bearer token.
 *
 * Cookies go along with requests that another site makes in the user's browser, so a request that names
 * another origin is refused, besides SameSite=Strict on the cookie itself.
 */
export interface SignInOperation<Body extends TSchema = TSchema, Params extends TSchema = TSchema> {
  id: string
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  summary: string
  body?: Body
  params?: Params
  /** Absent: the answer is 204 with an empty body. */
  response?: TSchema
  run(call: {
    signIn: SignIn
    browser: Browser
    body: Static<Body>
    params: Static<Params>
  }): Promise<Answer<unknown>>
}

/** Only lends the schemas' types to `run`. */
export const signInOperation = <Body extends TSchema, Params extends TSchema>(
  operation: SignInOperation<Body, Params>,
): SignInOperation => operation as unknown as SignInOperation

export function registerSignIn(
  app: HttpServer,
  operations: readonly SignInOperation[],
  { signIn, publicOrigin }: { signIn: SignIn; publicOrigin: string },
): void {
  for (const { id, method, path, summary, body, params, response, run } of operations) {
    app.route({
      method,
      url: `/v1${path}`,
      schema: {
        operationId: id,
        summary,
        ...(body ? { body } : {}),
        ...(params ? { params } : {}),
        querystring: Type.Object({}, { additionalProperties: false }),
        ...(response ? { response: { 200: response } } : {}),
      } as object,
      handler: async (request, reply) => {
        refuseOtherOrigin(request, publicOrigin)
        const call = { signIn, browser: browserOf(request), body: request.body, params: request.params }
        const answer = await run(call as Parameters<typeof run>[0])
        for (const cookie of answer.cookies) reply.header('set-cookie', cookie)
        return response ? reply.send(answer.body) : reply.status(204).send()
      },
    })
  }
}

function refuseOtherOrigin({ headers }: FastifyRequest, publicOrigin: string): void {
  if (headers.origin !== undefined && headers.origin !== publicOrigin) {
    throw new PosternError('unauthenticated', `Sessions are used from ${publicOrigin} alone.`)
  }
}

const browserOf = ({ headers, ip }: FastifyRequest): Browser => ({
  cookie: headers.cookie,
  address: ip,
  userAgent: headers['user-agent'],
})
