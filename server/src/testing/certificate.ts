import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { cleanUp } from './cleanup.ts'

/** A certificate for 127.0.0.1 that nobody but itself has signed, with its files. */
export interface TestCertificate {
  files: { certificate: string; key: string }
  cert: Buffer
  key: Buffer
}

/** For a test file, at whose end it is gone. */
export function makeCertificate(): TestCertificate {
  const home = mkdtempSync(path.join(tmpdir(), 'postern-certificate-'))
  cleanUp(async () => rmSync(home, { recursive: true, force: true }))
  return writeCertificate(home)
}

export function writeCertificate(home: string): TestCertificate {
  const files = { certificate: path.join(home, 'certificate.pem'), key: path.join(home, 'key.pem') }
  execFileSync(
    'openssl',
    [
      ...[
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '1',
      ],
      ...['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'],
      ...['-keyout', files.key, '-out', files.certificate],
    ],
    { stdio: 'ignore' },
  )
  return { files, cert: readFileSync(files.certificate), key: readFileSync(files.key) }
}
