import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import path from 'node:path'

/** The files that deploy/patroni/make-certificates.sh creates for one machine. */
export interface Credentials {
  ca: string
  certificate: string
  key: string
}

export const credentialsIn = (folder: string): Credentials => ({
  ca: path.join(folder, 'ca.pem'),
  certificate: path.join(folder, 'node.pem'),
  key: path.join(folder, 'node.key'),
})

/** Sends a request with or without a client certificate. Returns the body of a 200 response, otherwise undefined. */
export function getWith(
  { ca, certificate, key }: Pick<Credentials, 'ca'> & Partial<Credentials>,
  url: string,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const own = certificate && key ? { cert: readFileSync(certificate), key: readFileSync(key) } : {}
    const files = { ca: readFileSync(ca), ...own }
    const asked = request(url, { ...files, agent: false, timeout: 2000 }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => resolve(response.statusCode === 200 ? body : undefined))
      response.on('error', () => resolve(undefined))
    })
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => resolve(undefined))
    asked.end()
  })
}
