import { X509Certificate } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { bounceDeps, type Context, inboundDeps, submissionDeps } from '../context/context.ts'
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
import { UsageError } from '../platform/errors.ts'
import { Gauge } from '../platform/telemetry/metrics.ts'
import type { Part } from './serve.ts'

const certificateExpiry = new Gauge(
  'postern_intake_certificate_expiry_timestamp_seconds',
  'Expiry time of the TLS certificate used by the intake.',
  {},
)
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
