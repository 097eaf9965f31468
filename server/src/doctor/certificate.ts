import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import type { Config } from '../config/config.ts'
import { type Check, type Finding, failure, messageOf, ok, unlessFound, warning } from './check.ts'

/** Checks the intake's TLS certificate: files, key, validity period and host names. */
export const certificateCheck: Check = {
  name: 'certificate',
  async run({ settings }) {
    const { intakeTlsCertificate: file, intakeTlsKey: keyFile } = settings
    if (file === undefined || keyFile === undefined) {
      return [
        ok('The intake has no certificate and offers no TLS (POSTERN_INTAKE_TLS_CERTIFICATE is empty).'),
      ]
    }
    try {
      const [cert, key] = await Promise.all([readFile(file), readFile(keyFile)])
      createSecureContext({ cert, key })
      const certificate = new X509Certificate(cert)
      const found = [
        validityOf(certificate, file),
        ...namesOf(certificate, settings),
        await keyPermissions(keyFile),
      ]
      return unlessFound(
        found,
        `The certificate in ${file} is valid until ${dayOf(certificate.validToDate)}.`,
      )
    } catch (error) {
      return [
        failure(
          `The intake's TLS certificate cannot be used: ${messageOf(error)}.`,
          'Set POSTERN_INTAKE_TLS_CERTIFICATE and POSTERN_INTAKE_TLS_KEY to a certificate chain and its matching key (PEM), ' +
            'readable by this user.',
        ),
      ]
    }
  },
}

const dayMs = 24 * 3600 * 1000
const renewDays = 14

const dayOf = (date: Date): string => date.toISOString().slice(0, 10)

function validityOf({ validFromDate, validToDate }: X509Certificate, file: string): Finding | undefined {
  const leftMs = validToDate.getTime() - Date.now()
  const renew = 'Renew it; `postern intake` loads the new one within a minute.'
  if (leftMs <= 0) return failure(`The certificate in ${file} expired on ${dayOf(validToDate)}.`, renew)
  if (validFromDate.getTime() > Date.now()) {
    return failure(
      `The certificate in ${file} is not valid before ${dayOf(validFromDate)}.`,
      'Check the clock of this machine, or use the previous certificate.',
    )
  }
  if (leftMs > renewDays * dayMs) return undefined
  return warning(`The certificate in ${file} expires on ${dayOf(validToDate)}.`, renew)
}

/** Mail clients verify the host name; MTAs do so if MTA-STS or DANE requires it. */
function namesOf(certificate: X509Certificate, settings: Config): Finding[] {
  const { publicUrl, mxHost, returnPathHost, inboundPort, submissionPort, submissionsPort } = settings
  const covers = (name: string) =>
    (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined
  const lacks = (name: string) =>
    `The intake's TLS certificate does not cover ${name} (it covers ${certificate.subjectAltName ?? 'no name'})`
  const remedy = 'Issue a certificate that also covers this name.'
  const hasSubmission = (submissionPort ?? submissionsPort) !== undefined
  const hosts = [...new Set([returnPathHost, ...(inboundPort === undefined ? [] : [mxHost])])]
  return [
    ...(hasSubmission && !covers(publicUrl.hostname)
      ? [failure(`${lacks(publicUrl.hostname)}, so mail clients do not submit mail.`, remedy)]
      : []),
    ...hosts
      .filter((name) => !covers(name))
      .map((name) =>
        warning(`${lacks(name)}: senders that require a valid certificate cannot deliver.`, remedy),
      ),
  ]
}

async function keyPermissions(file: string): Promise<Finding | undefined> {
  const { mode } = await stat(file)
  if ((mode & 0o007) === 0) return undefined
  return warning(
    `Every user of this machine can read the private key in ${file}.`,
    `Run: chmod o-rwx ${file}`,
  )
}
