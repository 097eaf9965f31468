import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'

/**
 * Pairs of keys for signing, made before anything is locked: one takes a thread 100 ms, on a busy machine seconds, and
 * whoever makes it with a project's lock has everybody else who changes the project wait for it.
 */
export interface DkimPair {
  /** DER, in base64, as it stands in DNS. */
  publicKey: string
  /** PEM. */
  privateKey: string
}

const makePair = promisify(generateKeyPair)

// RFC 8301 §3.2: verifiers take RSA keys of 1024 to 4096 bits, and a signer uses at least 2048. Ed25519 (RFC 8463) is
// still unknown to many receivers.
const modulusLength = 2048
const keptAtMost = 8

/** A pair for one request, which may turn out not to need it. */
export class OfferedPair {
  readonly #pair: DkimPair | undefined
  isUsed = false

  constructor(pair?: DkimPair) {
    this.#pair = pair
  }

  /** As often as the request's transaction is run: what an earlier run wrote was rolled back. */
  use(): DkimPair {
    if (!this.#pair) throw new Error('an operation that makes a DKIM key must say so (makesDkimKey)')
    this.isUsed = true
    return this.#pair
  }
}

export class DkimPairs {
  readonly #unused: OfferedPair[] = []

  /** What was offered and not used goes to the next one. */
  async offer<T>(isWanted: boolean, work: (offered: OfferedPair) => Promise<T>): Promise<T> {
    if (!isWanted) return work(new OfferedPair())
    const offered = this.#unused.pop() ?? new OfferedPair(await newPair())
    try {
      return await work(offered)
    } finally {
      if (!offered.isUsed && this.#unused.length < keptAtMost) this.#unused.push(offered)
    }
  }
}

async function newPair(): Promise<DkimPair> {
  const { publicKey, privateKey } = await makePair('rsa', {
    modulusLength,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  return { publicKey: publicKey.toString('base64'), privateKey }
}
