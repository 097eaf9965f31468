import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import type { Config } from '../config/config.ts'
import { type Check, type Finding, failure, messageOf, ok, unlessFound, warning } from './check.ts'

/** The certificate of the intake: readable, whole, in its time, and for the names by which it is called. */
export const certificateCheck: Check = {
  name: 'certificate',
  async look({ settings }) {
    const { intakeTlsCertificate: file, intakeTlsKey: keyFile } = settings
    if (file === undefined || keyFile === undefined) {
      return [
        ok('The intake has no certificate, and offers no TLS (POSTERN_INTAKE_TLS_CERTIFICATE is empty).'),
      ]
    }
    try {
      const [cert, key] = await Promise.all([readFile(file), readFile(keyFile)])
      createSecureContext({ cert, key })
      const certificate = new X509Certificate(cert)
      const found = [timeOf(certificate, file), ...namesOf(certificate, settings), await keyGuard(keyFile)]
      return unlessFound(found, `The certificate in ${file} is good until ${dayOf(certificate.validToDate)}.`)
    } catch (error) {
      return [
        failure(
          `The certificate of the intake cannot be used: ${messageOf(error)}.`,
          'Set POSTERN_INTAKE_TLS_CERTIFICATE and POSTERN_INTAKE_TLS_KEY to a chain and the key that belongs to it (PEM), ' +
            'which this user may read.',
        ),
      ]
    }
  },
}

const dayMs = 24 * 3600 * 1000
const renewDays = 14

const dayOf = (date: Date): string => date.toISOString().slice(0, 10)

function timeOf({ validFromDate, validToDate }: X509Certificate, file: string): Finding | undefined {
  const leftMs = validToDate.getTime() - Date.now()
  const renew = 'Renew it; `postern intake` takes the new one within a minute.'
  if (leftMs <= 0) return failure(`The certificate in ${file} ended on ${dayOf(validToDate)}.`, renew)
  if (validFromDate.getTime() > Date.now()) {
    return failure(
      `The certificate in ${file} begins on ${dayOf(validFromDate)}.`,
      'Look at the clock of this machine, or use the certificate from before.',
    )
  }
  if (leftMs > renewDays * dayMs) return undefined
  return warning(`The certificate in ${file} ends on ${dayOf(validToDate)}.`, renew)
}

/** Customers' programs look at the name and refuse another; MTAs do so for those who ask them to (MTA-STS, DANE). */
function namesOf(certificate: X509Certificate, settings: Config): Finding[] {
  const { publicUrl, mxHost, returnPathHost, inboundPort, submissionPort, submissionsPort } = settings
  const covers = (name: string) =>
    (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined
  const lacks = (name: string) =>
    `The certificate of the intake is not for ${name} (it is for ${certificate.subjectAltName ?? 'nobody'})`
  const remedy = 'Have a certificate issued that names it, too.'
  const hasSubmission = (submissionPort ?? submissionsPort) !== undefined
  const hosts = [...new Set([returnPathHost, ...(inboundPort === undefined ? [] : [mxHost])])]
  return [
    ...(hasSubmission && !covers(publicUrl.hostname)
      ? [failure(`${lacks(publicUrl.hostname)}, so that programs refuse to submit mail.`, remedy)]
      : []),
    ...hosts
      .filter((name) => !covers(name))
      .map((name) => warning(`${lacks(name)}: who insists on it brings no mail.`, remedy)),
  ]
}

async function keyGuard(file: string): Promise<Finding | undefined> {
  const { mode } = await stat(file)
  if ((mode & 0o007) === 0) return undefined
  return warning(`Everybody on this machine can read the key in ${file}.`, `Run: chmod o-rwx ${file}`)
}
