import type { FastifyContextConfig, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import { PosternError } from '../errors.ts'
import type { HttpServer } from './server.ts'

/**
 * RFC 9110 §15.5.6: a known path answers every method that it does not support with 405 and lists the supported ones in
 * `Allow`. The routes belong to the plane, so its authentication runs first, and the refusal comes before the body is read.
 */
export interface SupportedRoute {
  method: string
  url: string
  /** The configuration of the path's refusing route; of several routes with one path, that of the first counts. */
  config?: FastifyContextConfig
  /** False for a GET without HEAD. */
  hasHead?: boolean
  onRequest?: (request: FastifyRequest) => Promise<unknown>
}

export function refuseOtherMethods(plane: HttpServer, routes: Iterable<SupportedRoute>): void {
  // Two routes have the same path if they differ in the names of its parameters only.
  const byPath = Map.groupBy(routes, ({ url }) => url.replaceAll(/:\w+/g, ':'))
  for (const [first, ...others] of byPath.values()) {
    if (!first) continue
    const methods = [first, ...others].flatMap(({ method, hasHead = true }) =>
      method === 'GET' && hasHead ? ['GET', 'HEAD'] : [method],
    )
    const allow = methods.toSorted().join(', ')
    const refuse = async ({ method }: FastifyRequest, reply: FastifyReply): Promise<never> => {
      reply.header('allow', allow)
      throw new PosternError('method_not_allowed', `${method} is not supported here. Supported: ${allow}.`)
    }
    plane.route({
      method: plane.supportedMethods.filter((method) => !methods.includes(method)) as HTTPMethods[],
      url: first.url,
      schema: { hide: true } as object,
      ...(first.config ? { config: first.config } : {}),
      onRequest: [...(first.onRequest ? [first.onRequest] : []), refuse],
      handler: refuse,
    })
  }
}
