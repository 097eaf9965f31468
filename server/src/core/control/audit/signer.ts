import type { Db } from '../../../platform/db/db.ts'
import { serveLines } from '../../../platform/net/line-socket.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { checkpointHash, genesis, type Head, type RowContent, rowHash } from './chain.ts'
import { findLast } from './checkpoints.sql.ts'
import { lineOfDatabase } from './export-lines.ts'
import { publicKeyOf, type SigningKey, signHash, writeKeys } from './keys.ts'
import { readChain, signedPageSize } from './signer.sql.ts'
import { appendSigned, readSigned, type Signed } from './signer-file.ts'
import {
  type Proposal,
  readRequest,
  requestLimits,
  type SignedCheckpoint,
  type SignerAnswer,
  type SignerRequest,
} from './signer-messages.ts'

/**
 * `postern signer`: signs checkpoints for a worker that does not have the key, and only what it has checked itself.
 *
 * - Each number is signed once. A proposal under the number of the last one gets the last one again.
 * - A checkpoint follows on the last one that was signed, whatever the database says.
 * - It is dated as it is proposed, give or take five minutes by the clock of the database.
 * - Nothing is signed where the database has a later checkpoint than the file: that was put back to an earlier state.
 * - Of each chain only rows behind the signed ones are signed, and each of them is read from the database, by a login
 *   that can only read, and must continue the chain from the signed row.
 *
 * So whoever has the worker's or the API's process can have rows signed that they have appended, and cannot have signed
 * history replaced. Left undone: keys in a PKCS #11 token or a KMS.
 */
export interface SignerDeps {
  /** As `postern_readonly`. */
  db: Db
  key: SigningKey
  file: string
  log: Logger
}

/** A proposal may have waited for the one before it. */
const apartMs = 5 * 60_000

/** What is told of a proposal that is not signed. */
class Refusal extends Error {}

export class Signer {
  readonly #deps: SignerDeps
  readonly #signed: Signed
  /** One at a time: each follows on the one before. */
  #turn: Promise<unknown> = Promise.resolve()

  private constructor(deps: SignerDeps, signed: Signed) {
    this.#deps = deps
    this.#signed = signed
  }

  static async open(deps: SignerDeps): Promise<Signer> {
    const signer = new Signer(deps, await readSigned(deps.file, publicKeyOf(deps.key)))
    if (signer.#signed.last === undefined) {
      deps.log.warn(
        { file: deps.file },
        'nothing was signed before: the first checkpoint follows on the last one in the database',
      )
    }
    return signer
  }

  async answer(request: SignerRequest): Promise<SignerAnswer> {
    if (request.type === 'status') return this.#status()
    const signed = this.#turn.then(() => this.#sign(request))
    this.#turn = signed.catch(() => {})
    try {
      return { type: 'signed', checkpoint: await signed }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      this.#deps.log.error({ checkpoint: request.id, reason: error.message }, 'a checkpoint was not signed')
      return { type: 'refused', reason: error.message }
    }
  }

  #status(): SignerAnswer {
    const { last } = this.#signed
    const [public_key = ''] = writeKeys(publicKeyOf(this.#deps.key))
    return { type: 'status', public_key, last: last ? { id: last.id, hash: last.hash } : null }
  }

  async #sign({ id, at, heads, prev_hash }: Proposal): Promise<SignedCheckpoint> {
    const { db, key, file } = this.#deps
    const { last } = this.#signed
    // The worker ended between the signature and its row, or two of them have asked.
    if (last && last.id === id && last.prev_hash === prev_hash) return last
    const { last: stored, at: now } = await db.read(findLast)
    const before = last ?? stored ?? { id: 0, hash: genesis }
    if (id !== before.id + 1 || prev_hash !== before.hash) {
      throw new Refusal(
        `Checkpoint ${id} does not follow on checkpoint ${before.id}, the last one that was signed.`,
      )
    }
    if (stored && stored.id > before.id) {
      throw new Refusal(
        `The database has checkpoint ${stored.id}, and ${file} ends with checkpoint ${before.id}: it is an old copy.`,
      )
    }
    // NaN is no time either.
    if (!(Math.abs(Date.parse(at) - Date.parse(now)) <= apartMs)) {
      throw new Refusal(`Checkpoint ${id} is dated ${at}, and it is ${now}.`)
    }
    for (const [index, head] of heads.entries()) {
      if (index > 0 && head.chain <= (heads[index - 1]?.chain ?? 0))
        throw new Refusal('The heads are not in order.')
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

  /** From the row that was signed last to the one that is to be signed, row by row. */
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
    if (at.hash !== hash) throw new Refusal(`Row ${seq} of chain ${chain} has another hash in the database.`)
  }
}

function next(at: { seq: number; hash: string }, text: string, chain: number) {
  const { value, isExact } = lineOfDatabase(text)
  const { type: _type, prev_hash, hash, ...content } = value as RowContent & Record<string, string>
  const isRight =
    isExact &&
    content.seq === at.seq + 1 &&
    prev_hash === at.hash &&
    rowHash(at.hash, content as RowContent) === hash
  if (!isRight) throw new Refusal(`Row ${at.seq + 1} of chain ${chain} does not continue what was signed.`)
  return { seq: content.seq, hash }
}

/** Listens until it is closed. */
export function serveSigner(signer: Signer, socket: string, log: Logger) {
  return serveLines(socket, requestLimits, async (line) => {
    const request = readRequest(line)
    if (!request)
      return JSON.stringify({ type: 'refused', reason: 'Invalid request.' } satisfies SignerAnswer)
    try {
      return JSON.stringify(await signer.answer(request))
    } catch (error) {
      log.error({ err: error }, 'a checkpoint could not be signed')
      throw error
    }
  })
}
