import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Context } from '../context/context.ts'
import { createApi } from '../http/api.ts'
import type { Part } from './serve.ts'

export async function apiPart(context: Context): Promise<Part> {
  const { config, log, jobs } = context
  const { app, retire } = createApi(context)
  await app.listen({ host: config.host, port: config.port })
  void jobs.start()
  log.info({ addresses: app.addresses(), public_url: config.publicUrl.origin }, 'serving')
  return {
    retire,
    async stop(graceMs) {
      await drained(app.server, Math.min(keptConnectionsMs, graceMs / 2))
      await app.close()
      await jobs.stop(graceMs)
    },
  }
}

// A reverse proxy reuses each idle connection many times within this period.
const keptConnectionsMs = 1000

/**
 * Waits briefly until no connection is open. A reverse proxy keeps connections open for its next request: closing
 * them immediately would drop requests in flight, and their callers would get 502. An API that is shutting down
 * closes each connection with its next response.
 */
async function drained(server: Server, atMostMs: number): Promise<void> {
  const connections = promisify(server.getConnections.bind(server))
  for (const end = Date.now() + atMostMs; Date.now() < end; await sleep(20))
    if ((await connections()) === 0) return
}
