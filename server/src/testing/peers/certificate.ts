import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { cleanUp } from '../harness/cleanup.ts'

/** A self-signed certificate for 127.0.0.1, with its files. */
export interface TestCertificate {
  files: { certificate: string; key: string }
  cert: Buffer
  key: Buffer
}

export interface CertificateOptions {
  /** Names in addition to 127.0.0.1. */
  names?: string[]
  days?: number
  /** The start of its validity period, for example 2020-01-01. */
  madeOn?: string
}

/** Creates a certificate and deletes it after the file's tests. */
export function makeCertificate(options: CertificateOptions = {}): TestCertificate {
  const home = mkdtempSync(path.join(tmpdir(), 'postern-certificate-'))
  cleanUp(async () => rmSync(home, { recursive: true, force: true }))
  return writeCertificate(home, options)
}

export function writeCertificate(
  home: string,
  { names = [], days = 1, madeOn }: CertificateOptions = {},
): TestCertificate {
  const files = { certificate: path.join(home, 'certificate.pem'), key: path.join(home, 'key.pem') }
  const alternatives = ['IP:127.0.0.1', ...names.map((name) => `DNS:${name}`)].join()
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', files.key]
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', `subjectAltName=${alternatives}`]
  const command = [
    'openssl',
    'req',
    '-x509',
    ...key,
    ...subject,
    '-days',
    String(days),
    '-out',
    files.certificate,
  ]
  const [program = '', ...args] = madeOn === undefined ? command : ['faketime', madeOn, ...command]
  execFileSync(program, args, { stdio: 'ignore' })
  return { files, cert: readFileSync(files.certificate), key: readFileSync(files.key) }
}
