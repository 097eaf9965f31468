import { type CheckpointContent, checkpointHash, genesis, type Head } from './chain.ts'
import type { Line } from './export-lines.ts'
import { badFile, type FirstBad } from './findings.ts'
import { isSigned, type VerifyingKeys } from './keys.ts'

type Checkpoint = CheckpointContent & { type: string; prev_hash: string; hash: string; signature: string }

export interface CheckedCheckpoint {
  id: number
  at: string
  hash: string
  heads: Head[]
}

/**
 * Follows the checkpoints, in the order of their ids, and tells the chains what to expect. A checkpoint whose
 * key is not known counts as checked when a later one, whose key is, has been: each covers the one before.
 */
export class CheckpointVerifier {
  /** The hashes by id. */
  readonly hashes = new Map<number, string>()
  /** Whether a known key has signed any of them. */
  isSigned = false
  readonly #keys: VerifyingKeys
  readonly #where: string
  #last: { id: number; hash: string } | undefined
  #unchecked: { id: number; keyId: string } | undefined

  /** A file may have been begun later than the first checkpoint. */
  constructor(keys: VerifyingKeys, where: string, { mayBeginLater }: { mayBeginLater: boolean }) {
    this.#keys = keys
    this.#where = where
    this.#last = mayBeginLater ? undefined : { id: 0, hash: genesis }
  }

  take({ value, isExact }: Line): { bad: FirstBad } | CheckedCheckpoint {
    const { type: _type, prev_hash, hash, signature, ...content } = value as Checkpoint
    const { id, at, key_id, heads } = content
    const problem = this.#problemWith(content, prev_hash, hash, signature, isExact)
    if (problem !== null) return { bad: badFile(`Checkpoint ${id} in ${this.#where} ${problem}`) }
    this.#last = { id, hash }
    this.hashes.set(id, hash)
    if (this.#keys.has(key_id)) {
      this.isSigned = true
      this.#unchecked = undefined
    } else this.#unchecked ??= { id, keyId: key_id }
    return { id, at, hash, heads }
  }

  /** To be called after the last one. Without any key there is nothing to expect of a signature. */
  end(): FirstBad | null {
    if (this.#unchecked === undefined || this.#keys.size === 0) return null
    const { id, keyId } = this.#unchecked
    return badFile(
      `Checkpoint ${id} in ${this.#where} is signed with the key "${keyId}", which is not known here, ` +
        'and no later one with a known key confirms it. Give its public key with --public-key.',
    )
  }

  #problemWith(
    content: CheckpointContent,
    prevHash: string,
    hash: string,
    signature: string,
    isExact: boolean,
  ): string | null {
    const { id, key_id, heads } = content
    const wanted = this.#last ?? { id: id - 1, hash: id === 1 ? genesis : prevHash }
    if (id !== wanted.id + 1) return `stands behind checkpoint ${wanted.id}: one was removed, added or moved.`
    if (!isExact) return 'was altered: it holds JSON that Postern does not write.'
    if (prevHash !== wanted.hash)
      return `does not follow on checkpoint ${wanted.id}: one of the two was altered.`
    if (checkpointHashOf(prevHash, content) !== hash) {
      return 'was altered: its hash does not match its content.'
    }
    if (!Array.isArray(heads) || !heads.every(isHead)) return 'was altered: its heads are no heads of chains.'
    const key = this.#keys.get(key_id)
    // Buffer reads past a wrong digit without a word.
    const isHex = typeof signature === 'string' && /^[0-9a-f]{128}$/.test(signature)
    if (isHex && (key === undefined || isSigned(key, hash, signature))) return null
    return 'was altered: its signature is not right.'
  }
}

const isHead = (head: Partial<Head> | null): boolean =>
  Number.isSafeInteger(head?.chain) && Number.isSafeInteger(head?.seq) && typeof head?.hash === 'string'

/** Canonical JSON refuses halves of surrogate pairs, which a forged file may hold. */
function checkpointHashOf(prevHash: string, content: CheckpointContent): string | undefined {
  try {
    return checkpointHash(prevHash, content)
  } catch {
    return undefined
  }
}
