import closeWithGrace from 'close-with-grace'
import { createApi } from '../api.ts'
import { type Config, loadConfig } from '../config.ts'
import {
  bounceDeps,
  type Context,
  createContext,
  inboundDeps,
  submissionDeps,
  workerDeps,
} from '../context.ts'
import { startBounces } from '../intake/bounces.ts'
import { type CertificateFiles, followCertificate, readCertificate } from '../intake/certificate.ts'
import { startInbound } from '../intake/inbound.ts'
import type { Listener } from '../intake/listener.ts'
import { startSubmission } from '../intake/submission.ts'
import { UsageError } from '../platform/errors.ts'
import { createLogger } from '../platform/log.ts'
import { startWorker } from '../worker/worker.ts'
import { options } from './command.ts'

/** The commands that go on until they are told to stop. */
interface Part {
  /** From now on not ready, and nothing new is taken. */
  retire?(): void
  stop(graceMs: number): Promise<void>
}

export async function serve(
  name: string,
  args: string[],
  start: ((context: Context) => Promise<Part>)[],
): Promise<void> {
  options(args)
  const config = loadConfig(process.env)
  const log = createLogger(config.logLevel)
  const context = createContext(config, log, name)
  const parts: Part[] = []
  for (const startPart of start) parts.push(await startPart(context))

  // On SIGTERM or SIGINT: not ready, no new connections, what is under way finishes, the pools close.
  const graceMs = config.stopGraceSeconds * 1000
  closeWithGrace({ delay: graceMs, logger: log }, async ({ err, signal }) => {
    // Whatever happens below, such as a log whose terminal is gone.
    setTimeout(() => process.exit(1), graceMs).unref()
    if (err) log.fatal({ err }, 'stopping after an unexpected error')
    else log.info({ signal }, 'stopping')
    for (const part of parts) part.retire?.()
    await Promise.all(parts.map((part) => part.stop(graceMs)))
    await context.close()
    log.info('stopped')
  })
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
      await app.close()
      await jobs.stop(graceMs)
    },
  }
}

export async function intakePart(context: Context): Promise<Part> {
  const { config, log } = context
  const files = certificateFiles(config)
  const certificate = files && (await usableCertificate(files))
  const bounces = await startBounces(bounceDeps(context, certificate))
  log.info({ host: config.intakeHost, port: bounces.port }, 'taking in reports')
  const listeners: Listener[] = [bounces]
  if (certificate && (config.submissionPort ?? config.submissionsPort) !== undefined) {
    const submission = await startSubmission(submissionDeps(context, certificate))
    listeners.push(...submission)
    log.info({ host: config.intakeHost, ports: submission.map(({ port }) => port) }, 'taking in mail')
  }
  if (config.inboundPort !== undefined) {
    const inbound = await startInbound({ ...inboundDeps(context, certificate), port: config.inboundPort })
    listeners.push(inbound)
    log.info({ host: config.intakeHost, port: inbound.port }, "taking in mail for customers' domains")
  }
  const unfollow =
    files &&
    certificate &&
    followCertificate(files, certificate, {
      log,
      onRenewed: (renewed) => listeners.forEach((listener) => void listener.renew(renewed)),
    })
  return {
    async stop(graceMs) {
      unfollow?.()
      await Promise.all(listeners.map((listener) => listener.stop(graceMs)))
    },
  }
}

const certificateFiles = ({ intakeTlsCertificate, intakeTlsKey }: Config): CertificateFiles | undefined =>
  intakeTlsCertificate === undefined || intakeTlsKey === undefined
    ? undefined
    : { certificate: intakeTlsCertificate, key: intakeTlsKey }

const usableCertificate = (files: CertificateFiles) =>
  readCertificate(files).catch((error: Error) => {
    throw new UsageError(`The certificate of the intake cannot be used: ${error.message}`)
  })

export const workerPart = async (context: Context): Promise<Part> => startWorker(workerDeps(context))
