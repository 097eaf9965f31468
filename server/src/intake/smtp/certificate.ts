// The TLS certificate of the SMTP listeners, and its automatic reload.

import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { Logger } from '../../platform/telemetry/log.ts'

/** PEM. */
export interface Certificate {
  cert: Buffer
  key: Buffer
}

export interface CertificateFiles {
  certificate: string
  key: string
}

const checkEveryMs = 60_000

/** Throws if the files cannot be read or the key does not match the certificate. */
export async function readCertificate(files: CertificateFiles): Promise<Certificate> {
  const [cert, key] = await Promise.all([readFile(files.certificate), readFile(files.key)])
  createSecureContext({ cert, key })
  return { cert, key }
}

/**
 * Checks every minute whether the files have been renewed. Open connections keep their certificate. Partially
 * written files, and files from two different renewals, are left for the next check. Returns a function that
 * stops the checks.
 */
export function watchCertificate(
  files: CertificateFiles,
  first: Certificate,
  { log, onRenewed, everyMs = checkEveryMs }: WatchDeps,
): () => void {
  let last = first
  const check = async () => {
    try {
      const current = await readCertificate(files)
      if (current.cert.equals(last.cert) && current.key.equals(last.key)) return
      last = current
      onRenewed(current)
      log.info({ file: files.certificate }, 'TLS certificate reloaded')
    } catch (error) {
      log.warn({ err: error, file: files.certificate }, 'TLS certificate unusable, keeping the previous one')
    }
  }
  const timer = setInterval(() => void check(), everyMs)
  timer.unref()
  return () => clearInterval(timer)
}

interface WatchDeps {
  log: Logger
  onRenewed(certificate: Certificate): void
  everyMs?: number
}
