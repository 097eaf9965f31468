import { generateKeyPairSync } from 'node:crypto'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import type { DkimKey } from '../mail/sign.ts'

/** A key as a domain's identity has one, and the DNS record that belongs to it. */
export function makeDkimPair(domain = 'example.com'): { key: DkimKey; record: string } {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'der' },
  })
  return {
    key: { domain, selector: 'postern-1', privateKey },
    record: `v=DKIM1; k=rsa; p=${publicKey.toString('base64')}`,
  }
}

/** What a receiver would say of the first signature, with this record in the DNS: `pass`, `fail`, `neutral`, … */
export async function dkimResult(mail: Buffer, record: string): Promise<string | undefined> {
  const { results } = await dkimVerify(mail, { resolver: async () => [[record]], strict: true })
  return results[0]?.status.result
}
