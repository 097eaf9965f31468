import { addressDigests } from './addresses.ts'
import { genesis, type Head, type PersonContent, personDigest, type RowContent, rowHash } from './chain.ts'
import type { CheckedCheckpoint } from './checkpoint-verifier.ts'
import type { Line } from './export-lines.ts'
import { badFile, badRow, type FirstBad } from './findings.ts'
import { recordedErasure } from './people.ts'

type Person = Omit<PersonContent, 'audit_id'> & { salt: string }
type Row = RowContent & {
  type: string
  prev_hash: string
  hash: string
  people: Person[]
  unreadable?: boolean
}

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

/** No transaction takes as long as this, nor do the clocks of a server and its stand-by differ by as much. */
const marginMs = 10 * 60_000

/**
 * Follows the chains row by row, in the order of (chain, seq), and holds them against what checkpoints have
 * signed: `expect` those first. It needs no database; everything it reads may be forged.
 */
export class ChainVerifier {
  rows = 0
  /** Those met so far. */
  readonly chains: number[] = []
  /** How often the data of a person is gone, which is no fault. */
  erased = 0
  /** And how often by the erasures that are recorded. */
  erasedByRecord = 0
  /**
   * The first row that was not altered and yet cannot have been written when it says. It is told when nothing else is
   * wrong: a clock that was set back once must not keep the rows behind it from being looked at.
   */
  doubt: FirstBad | null = null
  /** Rows that no checkpoint covers yet. */
  uncovered = 0
  #checkpoints: { first: number; last: number; lastAtMs: number } | undefined
  readonly #expected = new Map<number, Expected>()
  /** The chains in #expected that were not come to yet, last first. */
  #inOrder: number[] | undefined
  readonly #onlyChain: number | undefined
  #chain: number | undefined
  #seq = 0
  #hash = genesis
  #id = Number.NEGATIVE_INFINITY
  /** The latest time of the chain so far. */
  #latest = { seq: 0, at: '', ms: Number.NEGATIVE_INFINITY }
  /** How many of the chain's expected rows have been met. */
  #met = 0

  constructor(onlyChain?: number) {
    this.#onlyChain = onlyChain
  }

  /** What a checkpoint has signed. To be called for all of them, in their order, before anything else. */
  expectSigned({ id, at, heads }: CheckedCheckpoint): FirstBad | null {
    this.#checkpoints = { first: this.#checkpoints?.first ?? id, last: id, lastAtMs: Date.parse(at) }
    for (const head of heads) {
      const bad = this.#expect(head, id)
      if (bad) return bad
    }
    return null
  }

  /** What the table of heads says. One that is behind the checkpoints says nothing new here. */
  expectHead(head: Head): void {
    this.#expect(head, 'head')
  }

  #expect({ chain, seq, hash }: Head, witness: Witness): FirstBad | null {
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
    const { type: _type, prev_hash, hash, people, unreadable, ...content } = value as Row
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
      (isRepeated ? null : this.#checkPlace(chain, seq)) ??
      (unreadable ? badRow(chain, seq, 'cannot be read.') : checkForm(content, isExact)) ??
      (isRepeated ? null : this.#checkLink(chain, seq, prev_hash)) ??
      checkContent(content, prev_hash, hash) ??
      this.#checkPeople(content, people, isRepeated)
    if (bad || isRepeated) return bad
    this.rows++
    this.#seq = seq
    this.#hash = hash
    this.erasedByRecord += recordedErasure(content)
    this.#checkTime(content)
    return this.#checkExpected(content)
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
    this.#id = Number.NEGATIVE_INFINITY
    this.#latest = { seq: 0, at: '', ms: Number.NEGATIVE_INFINITY }
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

  #checkPlace(chain: number, seq: number): FirstBad | null {
    const wanted = this.#seq + 1
    if (seq < wanted)
      return badRow(chain, seq, `stands behind row ${this.#seq}: it is there twice, or moved.`)
    if (seq > wanted) return badRow(chain, wanted, `is missing: the next one there is row ${seq}.`)
    return null
  }

  #checkLink(chain: number, seq: number, prevHash: string): FirstBad | null {
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
    const digests = new Map([
      ['actor', content.actor_digest],
      ...(content.subject_digest === null ? [] : [['subject', content.subject_digest] as const]),
      ...addressDigests(content.before, 'before'),
      ...addressDigests(content.after, 'after'),
      ...addressDigests(content.related, 'related'),
    ])
    for (const { salt, ...person } of people as Person[]) {
      const digest = digests.get(person.part)
      if (digest === undefined)
        return badRow(chain, seq, `has personal data of a "${person.part}" whom it does not name.`)
      // Buffer reads past a wrong digit without a word.
      const isSalt = typeof salt === 'string' && /^[0-9a-f]{32}$/.test(salt)
      if (!isSalt || digest !== digestOf(salt, { audit_id: content.id, ...person })) {
        return badRow(chain, seq, `is right, but the personal data of its ${person.part} was altered.`)
      }
      digests.delete(person.part)
    }
    if (!isRepeated) this.erased += digests.size
    return null
  }

  /** Ids are taken and times read under the lock of the chain's head, so both rise with seq. */
  #checkTime({ chain, seq, id, at }: RowContent): void {
    const ms = Date.parse(at)
    if (id <= this.#id)
      this.doubt ??= badRow(chain, seq, `has the id ${id}, which is not above that of the row before it.`)
    // Not a time at all is none that Postern writes.
    if (!(ms >= this.#latest.ms - marginMs)) {
      this.doubt ??= badRow(
        chain,
        seq,
        `is dated ${at}, and row ${this.#latest.seq} before it ${this.#latest.at}: it was dated back, or the clock of the database was set back.`,
      )
    }
    this.#id = id
    if (ms > this.#latest.ms) this.#latest = { seq, at, ms }
  }

  /**
   * Each checkpoint covers every chain that has moved, so none can be older than the last one and not be covered.
   * Where the first checkpoints are not known, it may have been by one of those.
   */
  #checkCovered({ chain, seq, at }: RowContent): void {
    this.uncovered++
    const { first, last, lastAtMs } = this.#checkpoints ?? { first: 0, last: 0, lastAtMs: 0 }
    if (first !== 1 || !(Date.parse(at) + marginMs < lastAtMs)) return
    this.doubt ??= badRow(
      chain,
      seq,
      `is older than checkpoint ${last} and covered by none: somebody has kept it out of them, or it was dated back.`,
    )
  }

  #checkExpected(content: RowContent): FirstBad | null {
    const { chain } = content
    const expected = this.#expected.get(chain)
    if (this.#seq > (expected?.covered ?? 0)) this.#checkCovered(content)
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

function checkForm(content: RowContent, isExact: boolean): FirstBad | null {
  const { chain, seq, before, after, related, limit_exception } = content
  // SQL's null and JSON's are told apart by this: an export writes the latter as text.
  const isShaped = [before, after, related, limit_exception].every((part) => typeof part === 'object')
  if (isExact && isShaped) return null
  return badRow(chain, seq, 'was altered: it holds JSON that Postern does not write.')
}

function checkContent(content: RowContent, prevHash: string, hash: string): FirstBad | null {
  if (orRefused(() => rowHash(prevHash, content)) === hash) return null
  return badRow(content.chain, content.seq, 'was altered: its hash does not match its content.')
}

/** Canonical JSON refuses halves of surrogate pairs, which a forged file may hold. */
function orRefused(make: () => string): string | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}

const digestOf = (salt: string, person: PersonContent) => orRefused(() => personDigest(salt, person))
