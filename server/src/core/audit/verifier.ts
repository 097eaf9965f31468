import {
  type CheckpointContent,
  checkpointHash,
  genesis,
  type Head,
  type Part,
  type PersonContent,
  personDigest,
  type RowContent,
  rowHash,
} from './chain.ts'
import { isSigned, type VerifyingKeys } from './keys.ts'
import type { Line } from './lines.ts'

/** The first thing found wrong. Chain and seq are null where it is not about a row. */
export interface FirstBad {
  chain: number | null
  seq: number | null
  problem: string
}

export const badFile = (problem: string): FirstBad => ({ chain: null, seq: null, problem })
const badRow = (chain: number, seq: number, problem: string): FirstBad => ({
  chain,
  seq,
  problem: `Row ${seq} of chain ${chain} ${problem}`,
})

type Person = Omit<PersonContent, 'audit_id'> & { salt: string }
type Row = RowContent & { type: string; prev_hash: string; hash: string; people: Person[] }
type Checkpoint = CheckpointContent & { type: string; prev_hash: string; hash: string; signature: string }

/** Who says that a row is there: a checkpoint, by its id, or the table of heads. */
type Witness = number | 'head'

/** The rows that witnesses name in one chain, in their order. */
interface Expected {
  seqs: number[]
  hashes: string[]
  witnesses: Witness[]
  /** The last that a checkpoint names. */
  covered: number
}

const saysRow = (witness: Witness | undefined, seq: number): string =>
  witness === 'head' ? `the head of the chain says row ${seq}` : `checkpoint ${witness} has signed row ${seq}`

/**
 * Follows the chains row by row, in the order of (chain, seq), and holds them against what checkpoints have
 * signed: `expect` those first. It needs no database; everything it reads may be forged.
 */
export class ChainVerifier {
  rows = 0
  /** Those met so far. */
  readonly chains: number[] = []
  /** Persons whose data is gone, which is no fault. */
  erased = 0
  /** Rows that no checkpoint covers yet. */
  uncovered = 0
  readonly #expected = new Map<number, Expected>()
  /** The chains in #expected that were not come to yet, last first. */
  #inOrder: number[] | undefined
  readonly #onlyChain: number | undefined
  #chain: number | undefined
  #seq = 0
  #hash = genesis
  /** How many of the chain's expected rows have been met. */
  #met = 0

  constructor(onlyChain?: number) {
    this.#onlyChain = onlyChain
  }

  /** The checkpoints first, in their order. A head that is behind them says nothing new here. */
  expect({ chain, seq, hash }: Head, witness: Witness): FirstBad | null {
    if (this.#onlyChain !== undefined && chain !== this.#onlyChain) return null
    const expected = this.#expected.get(chain) ?? { seqs: [], hashes: [], witnesses: [], covered: 0 }
    this.#expected.set(chain, expected)
    const last = expected.seqs.at(-1) ?? 0
    if (seq <= last) {
      if (witness === 'head' || (seq === last && hash === expected.hashes.at(-1))) return null
      const change = seq === last ? 'replaced' : 'gone'
      return badRow(
        chain,
        last,
        `was signed by checkpoint ${expected.witnesses.at(-1)} and ${change} by checkpoint ${witness}.`,
      )
    }
    expected.seqs.push(seq)
    expected.hashes.push(hash)
    expected.witnesses.push(witness)
    if (witness !== 'head') expected.covered = seq
    return null
  }

  take({ value, isExact }: Line): FirstBad | null {
    const { type: _type, prev_hash, hash, people, ...content } = value as Row
    const { chain, seq } = content
    if (typeof chain !== 'number' || typeof seq !== 'number') {
      return badFile(`A row has no place in any chain (chain ${chain}, seq ${seq}).`)
    }
    if (chain !== this.#chain) {
      const bad = this.#endChain() ?? this.#findSkipped(chain) ?? this.#beginChain(chain, seq)
      if (bad) return bad
    }
    const isRepeated = seq === this.#seq && hash === this.#hash
    const bad =
      (isRepeated ? null : this.#place(chain, seq, prev_hash)) ??
      checkContent(content, prev_hash, hash, isExact) ??
      this.#checkPeople(content, people, isRepeated)
    if (bad || isRepeated) return bad
    this.rows++
    this.#seq = seq
    this.#hash = hash
    return this.#checkExpected(chain)
  }

  /** To be called after the last row. */
  end(): FirstBad | null {
    return this.#endChain() ?? this.#findSkipped(Number.POSITIVE_INFINITY)
  }

  #beginChain(chain: number, seq: number): FirstBad | null {
    if (this.#chain !== undefined && chain < this.#chain) {
      return badRow(chain, seq, `stands behind chain ${this.#chain}: the rows are not in order.`)
    }
    this.chains.push(chain)
    this.#chain = chain
    this.#seq = 0
    this.#hash = genesis
    this.#met = 0
    return null
  }

  #endChain(): FirstBad | null {
    if (this.#chain === undefined) return null
    const expected = this.#expected.get(this.#chain)
    this.#expected.delete(this.#chain)
    const next = expected?.seqs[this.#met]
    if (next === undefined) return null
    const says = saysRow(expected?.witnesses[this.#met], next)
    return badRow(this.#chain, this.#seq + 1, `is missing: the chain was cut off here, but ${says}.`)
  }

  /** A chain of which something is expected, and not one row was there where it would have been. */
  #findSkipped(next: number): FirstBad | null {
    this.#inOrder ??= [...this.#expected.keys()].sort((a, b) => b - a)
    for (;;) {
      const chain = this.#inOrder.at(-1)
      if (chain === undefined || chain >= next) return null
      this.#inOrder.pop()
      const expected = this.#expected.get(chain)
      if (!expected) continue
      const says = saysRow(expected.witnesses[0], expected.seqs[0] ?? 1)
      return badRow(chain, 1, `is missing, and all of the chain, but ${says}.`)
    }
  }

  #place(chain: number, seq: number, prevHash: string): FirstBad | null {
    const wanted = this.#seq + 1
    if (seq < wanted)
      return badRow(chain, seq, `stands behind row ${this.#seq}: it is there twice, or moved.`)
    if (seq > wanted) return badRow(chain, wanted, `is missing: the next one there is row ${seq}.`)
    if (prevHash === this.#hash) return null
    return badRow(
      chain,
      seq,
      seq === 1
        ? 'is not the beginning of a chain: its prev_hash is not zero.'
        : `does not follow on row ${this.#seq}: its prev_hash is not that row's hash, so one of the two was altered.`,
    )
  }

  #checkPeople(content: RowContent, people: unknown, isRepeated: boolean): FirstBad | null {
    const { chain, seq } = content
    const isList = Array.isArray(people) && people.every((one) => typeof one === 'object' && one !== null)
    if (!isList) return badRow(chain, seq, 'was altered: what stands beside it are no people.')
    const digests: Record<Part, string | null> = {
      actor: content.actor_digest,
      subject: content.subject_digest,
    }
    for (const { salt, ...person } of people as Person[]) {
      const digest = Object.hasOwn(digests, person.part) ? digests[person.part] : null
      if (digest === null)
        return badRow(chain, seq, `has personal data of a "${person.part}" whom it does not name.`)
      // Buffer reads past a wrong digit without a word.
      const isSalt = typeof salt === 'string' && /^[0-9a-f]{32}$/.test(salt)
      if (!isSalt || digest !== digestOf(salt, { audit_id: content.id, ...person })) {
        return badRow(chain, seq, `is right, but the personal data of its ${person.part} was altered.`)
      }
      digests[person.part] = null
    }
    if (!isRepeated) this.erased += Object.values(digests).filter((digest) => digest !== null).length
    return null
  }

  #checkExpected(chain: number): FirstBad | null {
    const expected = this.#expected.get(chain)
    if (this.#seq > (expected?.covered ?? 0)) this.uncovered++
    if (expected?.seqs[this.#met] !== this.#seq) return null
    const isTheOne = expected.hashes[this.#met] === this.#hash
    const witness = expected.witnesses[this.#met++]
    if (isTheOne) return null
    return badRow(
      chain,
      this.#seq,
      `is another than ${saysRow(witness, this.#seq)}: the chain was written anew.`,
    )
  }
}

function checkContent(
  content: RowContent,
  prevHash: string,
  hash: string,
  isExact: boolean,
): FirstBad | null {
  const { chain, seq, before, after, related, limit_exception } = content
  // SQL's null and JSON's are told apart by this: an export writes the latter as text.
  const isShaped = [before, after, related, limit_exception].every((part) => typeof part === 'object')
  if (!isExact || !isShaped)
    return badRow(chain, seq, 'was altered: it holds JSON that Postern does not write.')
  if (rowHashOf(prevHash, content) !== hash) {
    return badRow(chain, seq, 'was altered: its hash does not match its content.')
  }
  return null
}

/** Canonical JSON refuses halves of surrogate pairs, which a forged file may hold. */
function orRefused(make: () => string): string | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}

const rowHashOf = (prevHash: string, content: RowContent) => orRefused(() => rowHash(prevHash, content))
const digestOf = (salt: string, person: PersonContent) => orRefused(() => personDigest(salt, person))

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
    if (this.#keys.has(key_id)) this.#unchecked = undefined
    else this.#unchecked ??= { id, keyId: key_id }
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
    if (prevHash !== wanted.hash)
      return `does not follow on checkpoint ${wanted.id}: one of the two was altered.`
    if (!isExact) return 'was altered: it holds JSON that Postern does not write.'
    if (orRefused(() => checkpointHash(prevHash, content)) !== hash) {
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
