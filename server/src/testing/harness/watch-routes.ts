import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { FastifyInstance, RouteOptions } from 'fastify'

/**
 * Fastify publishes every new server on a diagnostics channel before its first route is added, so the code under test
 * needs no changes.
 */
const channel = 'fastify.initialization'

/**
 * Every route of the servers created by `build`, as `GET /v1/things/:id`, or `ANY /v1/things/*` for all methods.
 * Routes that only return 405 are excluded.
 */
export async function watchRoutes<Built>(build: () => Promise<Built>): Promise<[Built, string[]]> {
  const routes: string[] = []
  const watch = (message: unknown): void => {
    const { fastify } = message as { fastify: FastifyInstance }
    fastify.addHook('onRoute', ({ method, url, config }: RouteOptions) => {
      if (config?.refusesMethods) return
      routes.push(`${Array.isArray(method) ? 'ANY' : method} ${url}`)
    })
  }
  subscribe(channel, watch)
  try {
    return [await build(), routes]
  } finally {
    unsubscribe(channel, watch)
  }
}
