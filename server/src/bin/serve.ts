import { X509Certificate } from 'node:crypto'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import closeWithGrace from 'close-with-grace'
import manifest from '../../package.json' with { type: 'json' }
import { type Config, loadConfig } from '../config/config.ts'
import {
  bounceDeps,
  type Context,
  createContext,
  inboundDeps,
  submissionDeps,
  workerDeps,
} from '../context/context.ts'
import { QueueGauges } from '../core/gauges/queue-gauges.ts'
import { announceProcess, type ProcessKind } from '../core/processes/processes.ts'
import { createApi } from '../http/api.ts'
import { requireReady } from '../http/readiness.ts'
import { startBounces } from '../intake/bounces/bounces.ts'
import { startInbound } from '../intake/inbound/inbound.ts'
import {
  type Certificate,
  type CertificateFiles,
  readCertificate,
  watchCertificate,
} from '../intake/smtp/certificate.ts'
import type { Listener } from '../intake/smtp/listener.ts'
import { startSubmission } from '../intake/submission/submission.ts'
import { requireReplica } from '../platform/db/require-replica.ts'
import { PosternError, UsageError } from '../platform/errors.ts'
import { createLogger } from '../platform/telemetry/log.ts'
import { Gauge, onScrape, watchProcess } from '../platform/telemetry/metrics.ts'
import { startMetrics } from '../platform/telemetry/metrics-listener.ts'
import { startTracing } from '../platform/telemetry/tracing.ts'
import { startWorker } from '../worker/worker.ts'

const certificateExpiry = new Gauge(
  'postern_intake_certificate_expiry_timestamp_seconds',
  'Expiry time of the TLS certificate used by the intake.',
  {},
)
const providerUnavailable = new Gauge(
  'postern_provider_unavailable',
  "1 while none of the provider's hosts accepts mail and the worker is backing off, otherwise 0.",
  { provider: ['service', 'ses'] },
)

/** A part of a serving process: the API, the worker, the intake or the metrics listener. */
interface Part {
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

export async function intakePart(context: Context): Promise<Part> {
  const { config, log } = context
  const files = certificateFiles(config)
  const certificate = files && (await usableCertificate(files))
  const bounces = await startBounces(bounceDeps(context, certificate))
  log.info({ host: config.intakeHost, port: bounces.port }, 'listening for bounces')
  const listeners: Listener[] = [bounces]
  if (certificate && (config.submissionPort ?? config.submissionsPort) !== undefined) {
    const submission = await startSubmission(submissionDeps(context, certificate))
    listeners.push(...submission)
    log.info(
      { host: config.intakeHost, ports: submission.map(({ port }) => port) },
      'listening for submissions',
    )
  }
  if (config.inboundPort !== undefined) {
    const inbound = await startInbound({ ...inboundDeps(context, certificate), port: config.inboundPort })
    listeners.push(inbound)
    log.info({ host: config.intakeHost, port: inbound.port }, 'listening for inbound mail')
  }
  if (certificate) setExpiry(certificate)
  const unfollow =
    files &&
    certificate &&
    watchCertificate(files, certificate, {
      log,
      onRenewed(renewed) {
        setExpiry(renewed)
        for (const listener of listeners) listener.renew(renewed)
      },
    })
  return {
    async stop(graceMs) {
      unfollow?.()
      await Promise.all(listeners.map((listener) => listener.stop(graceMs)))
    },
  }
}

const setExpiry = ({ cert }: Certificate): void =>
  certificateExpiry.set({}, new X509Certificate(cert).validToDate.getTime() / 1000)

const certificateFiles = ({ intakeTlsCertificate, intakeTlsKey }: Config): CertificateFiles | undefined =>
  intakeTlsCertificate === undefined || intakeTlsKey === undefined
    ? undefined
    : { certificate: intakeTlsCertificate, key: intakeTlsKey }

const usableCertificate = (files: CertificateFiles) =>
  readCertificate(files).catch((error: Error) => {
    throw new UsageError(`The intake's TLS certificate cannot be used: ${error.message}`)
  })

export async function workerPart(context: Context): Promise<Part> {
  const { config, db, home, log, transports } = context
  const gauges = new QueueGauges({ db: db.admin, mailDb: home?.mail, log })
  onScrape(() => gauges.refresh())
  onScrape(() => {
    if (config.mtaHosts.length > 0)
      providerUnavailable.set({ provider: 'service' }, Number(transports.service.isUnavailable))
    if (transports.ses) providerUnavailable.set({ provider: 'ses' }, Number(transports.ses.isUnavailable))
  })
  return startWorker(workerDeps(context))
}
