import { type KeyObject, X509Certificate } from 'node:crypto'
import { snsHostOf } from './sns.ts'

/**
 * Requests to SNS: fetching signing certificates and confirming subscriptions. They are sent only to the host
 * derived from a configured topic, or to the endpoint that the operator has configured instead.
 */
export interface SnsClientOptions {
  /** For a private endpoint and for tests. */
  endpoint?: string | undefined
  timeoutMs?: number
}

/** SNS was unreachable or failed; a retry may succeed. */
export class SnsUnavailable extends Error {
  override readonly name = 'SnsUnavailable'
}

const defaultTimeoutMs = 5000
const maxCertificateBytes = 16 * 1024
/** Each region has one or two certificates at a time. */
const maxCached = 20
const cacheMs = 24 * 3600_000
const minKeyBits = 2048

interface Certificate {
  key: KeyObject
  validFrom: number
  validTo: number
}

export class SnsClient {
  readonly #endpoint: string | undefined
  readonly #timeoutMs: number
  readonly #cache = new Map<string, { certificate: Certificate; until: number }>()

  constructor({ endpoint, timeoutMs = defaultTimeoutMs }: SnsClientOptions) {
    this.#endpoint = endpoint
    this.#timeoutMs = timeoutMs
  }

  /**
   * Returns the key of a currently valid certificate, or undefined. `beforeFetch` is called if the
   * certificate is not cached; its errors are propagated. Throws SnsUnavailable.
   */
  async keyOf(
    topicArn: string,
    path: string,
    beforeFetch: () => Promise<void>,
  ): Promise<KeyObject | undefined> {
    const now = Date.now()
    const address = this.#addressOf(topicArn, path)
    const known = this.#cache.get(address)
    let certificate = known && known.until > now ? known.certificate : undefined
    if (!certificate) {
      await beforeFetch()
      certificate = await this.#fetchCertificate(address)
      if (!certificate) return undefined
      this.#addToCache(address, certificate, now + cacheMs)
    }
    const isValid = certificate.validFrom <= now && now <= certificate.validTo
    return isValid ? certificate.key : undefined
  }

  /** Throws SnsUnavailable if SNS does not confirm. */
  async confirm(topicArn: string, token: string): Promise<void> {
    const query = new URLSearchParams({
      ...{ Action: 'ConfirmSubscription', Version: '2010-03-31' },
      TopicArn: topicArn,
      Token: token,
    })
    const { status } = await this.#get(this.#addressOf(topicArn, `/?${query}`))
    if (status !== 200) throw new SnsUnavailable(`SNS did not confirm the subscription (status ${status})`)
  }

  #addressOf(topicArn: string, path: string): string {
    return `${this.#endpoint ?? `https://${snsHostOf(topicArn)}`}${path}`
  }

  /** Only existing certificates are cached: unknown names must not evict them. */
  #addToCache(address: string, certificate: Certificate, until: number): void {
    this.#cache.delete(address)
    this.#cache.set(address, { certificate, until })
    const [oldest] = this.#cache.keys()
    if (this.#cache.size > maxCached && oldest !== undefined) this.#cache.delete(oldest)
  }

  async #fetchCertificate(address: string): Promise<Certificate | undefined> {
    const { status, body } = await this.#get(address)
    if (status >= 500 || status === 429) throw new SnsUnavailable(`SNS failed (status ${status})`)
    return status === 200 && body ? certificateOf(body) : undefined
  }

  /** `body` is undefined if it is too large. */
  async #get(address: string): Promise<{ status: number; body: Buffer | undefined }> {
    try {
      const response = await fetch(address, {
        // A redirect would leave the known host, so it is an error.
        redirect: 'error',
        signal: AbortSignal.timeout(this.#timeoutMs),
      })
      return { status: response.status, body: await readAtMost(response, maxCertificateBytes) }
    } catch (error) {
      // Only the cause is reported, because the error's message can contain the URL with a token.
      const { code, name } = ((error as Error).cause ?? error) as { code?: string; name: string }
      throw new SnsUnavailable(`SNS could not be reached (${code ?? name})`)
    }
  }
}

async function readAtMost(response: Response, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    // Leaving the loop cancels the rest.
    if (size > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function certificateOf(pem: Buffer): Certificate | undefined {
  try {
    const { publicKey: key, validFromDate, validToDate } = new X509Certificate(pem)
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
    if (key.asymmetricKeyType !== 'rsa' || bits < minKeyBits) return undefined
    return { key, validFrom: validFromDate.getTime(), validTo: validToDate.getTime() }
  } catch {
    return undefined
  }
}
