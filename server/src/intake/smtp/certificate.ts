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

const lookEveryMs = 60_000

/** Throws when they cannot be read, or do not belong together. */
export async function readCertificate(files: CertificateFiles): Promise<Certificate> {
  const [cert, key] = await Promise.all([readFile(files.certificate), readFile(files.key)])
  createSecureContext({ cert, key })
  return { cert, key }
}

/**
 * Looks once a minute whether the files were renewed. Whoever is connected keeps what they have. Files that are half
 * written, or of two different renewals, are left for the next look. Returns how to end it.
 */
export function followCertificate(
  files: CertificateFiles,
  first: Certificate,
  { log, onRenewed, everyMs = lookEveryMs }: FollowDeps,
): () => void {
  let last = first
  const look = async () => {
    try {
      const now = await readCertificate(files)
      if (now.cert.equals(last.cert) && now.key.equals(last.key)) return
      last = now
      onRenewed(now)
      log.info({ file: files.certificate }, 'the certificate was renewed')
    } catch (error) {
      log.warn({ err: error, file: files.certificate }, 'the certificate cannot be used; the last one is')
    }
  }
  const timer = setInterval(() => void look(), everyMs)
  timer.unref()
  return () => clearInterval(timer)
}

interface FollowDeps {
  log: Logger
  onRenewed(certificate: Certificate): void
  everyMs?: number
}
