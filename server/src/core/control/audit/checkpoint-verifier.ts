/**
 * Verifies checkpoints in the order of their ids. A checkpoint signed with an unknown key counts as verified once a later
 * checkpoint signed with a known key is verified, because each checkpoint covers the previous one.
 */
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

export class CheckpointVerifier {
  /** Hashes by checkpoint id. */
  readonly hashes = new Map<number, string>()
  /** Whether a known key has signed any checkpoint. */
  isSigned = false
  readonly #keys: VerifyingKeys
  readonly #where: string
  #last: { id: number; hash: string } | undefined
  #unchecked: { id: number; keyId: string } | undefined

  /** `mayBeginLater`: whether the source can start after the first checkpoint, as a file can. */
  constructor(keys: VerifyingKeys, where: string, { mayBeginLater }: { mayBeginLater: boolean }) {
    this.#keys = keys
    this.#where = where
    this.#last = mayBeginLater ? undefined : { id: 0, hash: genesis }
  }

  check({ value, isExact }: Line): { bad: FirstBad } | CheckedCheckpoint {
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

  /** Call after the last checkpoint. Without keys, signatures are not checked. */
  end(): FirstBad | null {
    if (this.#unchecked === undefined || this.#keys.size === 0) return null
    const { id, keyId } = this.#unchecked
    return badFile(
      `Checkpoint ${id} in ${this.#where} is signed with the key "${keyId}", which is not known here, ` +
        'and no later checkpoint with a known key confirms it. Pass its public key with --public-key.',
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
    const previous = this.#last ?? { id: id - 1, hash: id === 1 ? genesis : prevHash }
    if (id !== previous.id + 1)
      return `comes after checkpoint ${previous.id}: a checkpoint was removed, added or moved.`
    if (!isExact) return 'was altered: it contains JSON that Postern does not write.'
    if (prevHash !== previous.hash)
      return `does not follow checkpoint ${previous.id}: one of the two was altered.`
    if (checkpointHashOf(prevHash, content) !== hash) {
      return 'was altered: its hash does not match its content.'
    }
    if (!Array.isArray(heads) || !heads.every(isHead)) return 'was altered: its heads are invalid.'
    const key = this.#keys.get(key_id)
    // Buffer silently ignores invalid digits.
    const isHex = typeof signature === 'string' && /^[0-9a-f]{128}$/.test(signature)
    if (isHex && (key === undefined || isSigned(key, hash, signature))) return null
    return 'was altered: its signature is invalid.'
  }
}

const isHead = (head: Partial<Head> | null): boolean =>
  Number.isSafeInteger(head?.chain) && Number.isSafeInteger(head?.seq) && typeof head?.hash === 'string'

/** Canonical JSON rejects unpaired surrogates, which a forged file can contain. */
function checkpointHashOf(prevHash: string, content: CheckpointContent): string | undefined {
  try {
    return checkpointHash(prevHash, content)
  } catch {
    return undefined
  }
}
