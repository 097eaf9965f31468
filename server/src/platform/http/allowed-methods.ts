import type { FastifyContextConfig, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import { PosternError } from '../errors.ts'
import type { HttpServer } from './server.ts'

/**
 * RFC 9110 §15.5.6: unsupported methods on a known path get 405 with the supported methods in `Allow`. The routes are
 * registered in the plane, so its authentication runs first, and the response is sent before the body is read.
 */
export interface SupportedRoute {
  method: string
  url: string
  /** The configuration of the 405 route. If several routes share a path, the first one applies. */
  config?: FastifyContextConfig
  /** False if GET does not imply HEAD. */
  hasHead?: boolean
  onRequest?: (request: FastifyRequest) => Promise<unknown>
}

export function refuseOtherMethods(plane: HttpServer, routes: Iterable<SupportedRoute>): void {
  // Paths are equal if they differ only in the names of their parameters.
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
      config: { ...first.config, refusesMethods: true },
      onRequest: [...(first.onRequest ? [first.onRequest] : []), refuse],
      handler: refuse,
    })
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route only answers 405. */
    refusesMethods?: true
  }
}
