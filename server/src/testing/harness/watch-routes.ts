import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { FastifyInstance, RouteOptions } from 'fastify'

/** Fastify publishes every server that is made here, before its first route: what a test builds need not know of it. */
const channel = 'fastify.initialization'

/**
 * Every route of the servers made while `build` runs, as `GET /v1/things/:id`; one that takes every method is
 * `ANY /v1/things/*`. The routes that answer 405 are left out.
 */
export async function watchRoutes<Built>(build: () => Promise<Built>): Promise<[Built, string[]]> {
  const routes: string[] = []
  const watch = (message: unknown): void => {
    const { fastify } = message as { fastify: FastifyInstance }
    fastify.addHook('onRoute', ({ method, url }: RouteOptions) => {
      if (Array.isArray(method) && method.length < fastify.supportedMethods.length) return
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
