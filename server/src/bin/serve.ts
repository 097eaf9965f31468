import closeWithGrace from 'close-with-grace'
import manifest from '../../package.json' with { type: 'json' }
import { type Config, loadConfig } from '../config/config.ts'
import { type Context, createContext } from '../context/context.ts'
import { announceProcess, type ProcessKind } from '../core/processes/processes.ts'
import { requireReady } from '../http/readiness.ts'
import { requireReplica } from '../platform/db/require-replica.ts'
import { PosternError } from '../platform/errors.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { watchProcess } from '../platform/telemetry/metrics.ts'
import { startMetrics } from '../platform/telemetry/metrics-listener.ts'
import { startTracing } from '../platform/telemetry/tracing.ts'

/** A part of a serving process: the API, the worker, the intake or the metrics listener. */
export interface Part {
  /** Reports that the process is not ready, and stops accepting new work. */
  retire?(): void
  stop(graceMs: number): Promise<void>
}

export async function serve(
  kind: ProcessKind,
  start: ((context: Context) => Promise<Part>)[],
): Promise<void> {
  const name = `postern ${kind}`
  const config = loadConfig(process.env)
  const log = createLogger(config.logLevel)
  const context = createContext(config, log, name)
  const tracing = await tracingOf(config, name)
  const parts: Part[] = []
  try {
    const isApart = config.cells.some(({ name, url }) => name === config.cell && url !== undefined)
    if (isApart) await context.home?.admin.read(requireReplica)
    // The metrics listener starts first, so that no worker is running if the listener fails.
    for (const startPart of [metricsPart, ...start]) parts.push(await startPart(context))
    parts.push(announcedPart(context, kind))
  } catch (error) {
    await Promise.all(parts.map((part) => part.stop(0)))
    await context.close()
    await tracing?.stop()
    throw error
  }

  // On SIGTERM or SIGINT: report that the process is not ready, accept no new connections, finish current work, and
  // close the pools.
  const graceMs = config.stopGraceSeconds * 1000
  closeWithGrace({ delay: graceMs, logger: log }, async ({ err, signal }) => {
    // Exit even if the steps below hang, for example while writing to a terminal that no longer exists.
    setTimeout(() => process.exit(1), graceMs).unref()
    if (err) log.fatal({ err }, 'stopping after an unexpected error')
    else log.info({ signal }, 'stopping')
    for (const part of parts) part.retire?.()
    await Promise.all(parts.map((part) => part.stop(graceMs)))
    await context.close()
    await tracing?.stop()
    log.info('stopped')
  })
}

const tracingOf = ({ otlpEndpoint: endpoint, traceShare: ratio }: Config, service: string) =>
  endpoint === undefined ? undefined : startTracing({ endpoint, ratio, service, version: manifest.version })

/** The row of the process, for the overview. */
const announcedPart = ({ config, db, home, log }: Context, kind: ProcessKind): Part =>
  announceProcess({
    ...{ db: home?.mail ?? db.everywhere, log, kind, version: manifest.version },
    cell: config.cell ?? null,
  })

/** The listener for Prometheus and health checks. */
async function metricsPart(context: Context): Promise<Part> {
  const { config, log } = context
  if (config.metricsPort === undefined) return { stop: async () => {} }
  watchProcess(manifest.version)
  let retired = false
  const listener = await startMetrics({
    host: config.metricsHost,
    port: config.metricsPort,
    async requireReady() {
      if (retired) throw new PosternError('unavailable', 'The process is shutting down.')
      return requireReady(context, { needsJobs: false })
    },
    log,
  })
  log.info({ host: config.metricsHost, port: listener.port }, 'serving metrics')
  return {
    retire() {
      retired = true
    },
    stop: () => listener.stop(),
  }
}
