/**
 * `postern signer`: verifies and signs checkpoints, and signs evidence files, for a worker that does not have the key.
 *
 * - Each number is signed once. A proposal with the number of the last checkpoint returns the last checkpoint again.
 * - A checkpoint must follow the last signed checkpoint, regardless of the contents of the database.
 * - The time of a checkpoint must be within five minutes of the database's clock.
 * - Nothing is signed if the database has a later checkpoint than the file, because the file is then an old copy.
 * - Only rows after the last signed row of a chain are signed. The signer reads each row from the database with a read-only
 *   login, and the rows must continue the chain from the signed row.
 * - The time of an evidence file must be within five minutes of the database's clock. Its content is not checked: the
 *   checkpoint in the file proves the rows of the audit log.
 *
 * An attacker who controls the worker or the API can append rows and get them signed, but cannot replace signed history.
 * Not implemented: keys in a PKCS #11 token or a KMS.
 */
import type { Db } from '../../../platform/db/db.ts'
import { serveLines } from '../../../platform/net/line-socket.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { checkpointHash, genesis, type Head, type RowContent, rowHash } from './chain.ts'
import { findLast } from './checkpoints.sql.ts'
import { signEvidence } from './evidence-signature.ts'
import { lineOfDatabase } from './export-lines.ts'
import { publicKeyOf, type SigningKey, signHash, writeKeys } from './keys.ts'
import { readChain, signedPageSize } from './signer.sql.ts'
import { appendSigned, readSigned, type Signed } from './signer-file.ts'
import {
  type EvidenceRequest,
  type Proposal,
  readRequest,
  requestLimits,
  type SignedCheckpoint,
  type SignerRequest,
  type SignerResponse,
} from './signer-messages.ts'

export interface SignerDeps {
  /** Connected with the role `postern_readonly`. */
  db: Db
  key: SigningKey
  file: string
  log: Logger
}

/**
 * The maximum difference between a signed time and the database's clock, including the time that a proposal waits for the
 * previous one.
 */
const maxTimeDifferenceMs = 5 * 60_000

/** Why a proposal is not signed. */
class Refusal extends Error {}

export class CheckpointSigner {
  readonly #deps: SignerDeps
  readonly #signed: Signed
  /** One at a time, because each checkpoint follows the previous one. */
  #pending: Promise<unknown> = Promise.resolve()

  private constructor(deps: SignerDeps, signed: Signed) {
    this.#deps = deps
    this.#signed = signed
  }

  static async open(deps: SignerDeps): Promise<CheckpointSigner> {
    const signer = new CheckpointSigner(deps, await readSigned(deps.file, publicKeyOf(deps.key)))
    if (signer.#signed.last === undefined) {
      deps.log.warn(
        { file: deps.file },
        'no signed checkpoints yet: the first one follows the last checkpoint in the database',
      )
    }
    return signer
  }

  async answer(request: SignerRequest): Promise<SignerResponse> {
    if (request.type === 'status') return this.#status()
    try {
      if (request.type === 'sign_evidence') return await this.#signEvidence(request)
      const signed = this.#pending.then(() => this.#sign(request))
      this.#pending = signed.catch(() => {})
      return { type: 'signed', checkpoint: await signed }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      const subject = request.type === 'sign' ? { checkpoint: request.id } : { evidence: request.evidence_id }
      this.#deps.log.error({ ...subject, reason: error.message }, 'signature refused')
      return { type: 'refused', reason: error.message }
    }
  }

  async #signEvidence({ type: _type, ...request }: EvidenceRequest): Promise<SignerResponse> {
    const { db, key } = this.#deps
    const { at: now } = await db.read(findLast)
    requireCurrent(`Evidence ${request.evidence_id}`, request.at, now)
    const signature = signEvidence(key, { ...request, key_id: key.id })
    return { type: 'signed_evidence', key_id: key.id, signature }
  }

  #status(): SignerResponse {
    const { last } = this.#signed
    const [public_key = ''] = writeKeys(publicKeyOf(this.#deps.key))
    return { type: 'status', public_key, last: last ? { id: last.id, hash: last.hash } : null }
  }

  async #sign({ id, at, heads, prev_hash }: Proposal): Promise<SignedCheckpoint> {
    const { db, key, file } = this.#deps
    const { last } = this.#signed
    // The worker stopped between receiving the signature and inserting the checkpoint, or two workers sent the proposal.
    if (last && last.id === id && last.prev_hash === prev_hash) return last
    const { last: stored, at: now } = await db.read(findLast)
    const before = last ?? stored ?? { id: 0, hash: genesis }
    if (id !== before.id + 1 || prev_hash !== before.hash) {
      throw new Refusal(
        `Checkpoint ${id} does not follow checkpoint ${before.id}, the last one that was signed.`,
      )
    }
    if (stored && stored.id > before.id) {
      throw new Refusal(
        `The database has checkpoint ${stored.id}, but ${file} ends with checkpoint ${before.id}: the file is an old copy.`,
      )
    }
    requireCurrent(`Checkpoint ${id}`, at, now)
    for (const [index, head] of heads.entries()) {
      if (index > 0 && head.chain <= (heads[index - 1]?.chain ?? 0))
        throw new Refusal('The heads are not in ascending order.')
      await this.#check(head)
    }
    const content = { id, at, heads, key_id: key.id }
    const hash = checkpointHash(prev_hash, content)
    const checkpoint = { ...content, prev_hash, hash, signature: signHash(key, hash) }
    await appendSigned(file, checkpoint)
    this.#signed.last = checkpoint
    for (const head of heads) this.#signed.heads.set(head.chain, { seq: head.seq, hash: head.hash })
    return checkpoint
  }

  /** Verifies the rows from the last signed row up to this head. */
  async #check({ chain, seq, hash }: Head): Promise<void> {
    let at = this.#signed.heads.get(chain) ?? { seq: 0, hash: genesis }
    if (seq <= at.seq)
      throw new Refusal(`Row ${seq} of chain ${chain} is not after row ${at.seq}, which was signed.`)
    while (at.seq < seq) {
      const after = at.seq
      const lines = await this.#deps.db.read((tx) => readChain(tx, { chain, after, upTo: seq }))
      for (const line of lines) at = next(at, line, chain)
      if (lines.length < signedPageSize && at.seq < seq) {
        throw new Refusal(`Chain ${chain} has no row ${at.seq + 1}.`)
      }
    }
    if (at.hash !== hash)
      throw new Refusal(`Row ${seq} of chain ${chain} has a different hash in the database.`)
  }
}

function requireCurrent(what: string, at: string, now: string): void {
  // Also true for NaN.
  if (!(Math.abs(Date.parse(at) - Date.parse(now)) <= maxTimeDifferenceMs))
    throw new Refusal(`${what} is dated ${at}, but the current time is ${now}.`)
}

function next(at: { seq: number; hash: string }, text: string, chain: number) {
  const { value, isExact } = lineOfDatabase(text)
  const { type: _type, prev_hash, hash, ...content } = value as RowContent & Record<string, string>
  const isValid =
    isExact &&
    content.seq === at.seq + 1 &&
    prev_hash === at.hash &&
    rowHash(at.hash, content as RowContent) === hash
  if (!isValid) throw new Refusal(`Row ${at.seq + 1} of chain ${chain} does not continue the signed chain.`)
  return { seq: content.seq, hash }
}

/** Listens on the socket until it is closed. */
export function serveSigner(signer: CheckpointSigner, socket: string, log: Logger) {
  return serveLines(socket, requestLimits, async (line) => {
    const request = readRequest(line)
    if (!request)
      return JSON.stringify({ type: 'refused', reason: 'Invalid request.' } satisfies SignerResponse)
    try {
      return JSON.stringify(await signer.answer(request))
    } catch (error) {
      log.error({ err: error }, 'failed to sign')
      throw error
    }
  })
}
