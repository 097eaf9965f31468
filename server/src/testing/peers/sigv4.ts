import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** Verification of AWS Signature Version 4. */
export interface SignedRequest {
  method: string
  /** The path as it appears in the request line. */
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
}

export interface Scope {
  accessKeyId: string
  date: string
  region: string
  service: string
  signedHeaders: string[]
  signature: string
}

const authorization =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/

export function scopeOf(headers: IncomingHttpHeaders): Scope | undefined {
  const match = authorization.exec(headers.authorization ?? '')
  if (!match) return undefined
  const [, accessKeyId = '', date = '', region = '', service = '', signed = '', signature = ''] = match
  return { accessKeyId, date, region, service, signedHeaders: signed.split(';'), signature }
}

export function isSignedWith(secret: string, scope: Scope, request: SignedRequest): boolean {
  const { date, region, service, signedHeaders, signature } = scope
  const canonical = [
    request.method,
    // Every service except S3 encodes the path a second time.
    request.path.split('/').map(encodeURIComponent).join('/'),
    '',
    ...signedHeaders.map((name) => `${name}:${String(request.headers[name] ?? '').trim()}`),
    '',
    signedHeaders.join(';'),
    sha256(request.body),
  ].join('\n')
  const toSign = [
    'AWS4-HMAC-SHA256',
    request.headers['x-amz-date'],
    `${date}/${region}/${service}/aws4_request`,
    sha256(canonical),
  ].join('\n')
  const key = [date, region, service, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secret}`)
  return timingSafeEqual(hmac(key, toSign), Buffer.from(signature, 'hex'))
}

const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')

const hmac = (key: string | Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest()
