/**
 * Verifies chains row by row, in the order of (chain, seq), against the rows that checkpoints have signed. Call
 * `expectSigned` for all checkpoints first. Does not need a database. All input can be forged.
 */
import { addressDigests, listDigest, listDigests } from './addresses.ts'
import { genesis, type Head, type PersonContent, personDigest, type RowContent, rowHash } from './chain.ts'
import type { CheckedCheckpoint } from './checkpoint-verifier.ts'
import { recordedErasure } from './erasure.ts'
import type { Line } from './export-lines.ts'
import { badFile, badRow, type FirstBad } from './findings.ts'

type Person = Omit<PersonContent, 'audit_id'> & { salt: string }
type Row = RowContent & {
  type: string
  prev_hash: string
  hash: string
  people: Person[]
  unreadable?: boolean
}

/** Evidence that a row exists: the id of a checkpoint, or the table of heads. */
type Witness = number | 'head'

/** The rows of one chain that checkpoints or heads list, in order. */
interface Expected {
  seqs: number[]
  hashes: string[]
  witnesses: Witness[]
  /** The last row that a checkpoint lists. */
  covered: number
}

const claimOf = (witness: Witness | undefined, seq: number): string =>
  witness === 'head'
    ? `the head of the chain refers to row ${seq}`
    : `checkpoint ${witness} signed row ${seq}`

/** Longer than any transaction, and longer than the clock difference between a server and its standby. */
const marginMs = 10 * 60_000

export class ChainVerifier {
  rows = 0
  /** The chains read so far. */
  readonly chains: number[] = []
  /** The number of missing entries of personal data. Erasure is not a fault. */
  erased = 0
  /** The number of missing entries that the recorded erasures account for. */
  erasedByRecord = 0
  /**
   * The first row that is intact but has an implausible time or id. It is reported only if there is no other problem: a
   * clock that was set back once must not prevent the verification of later rows.
   */
  doubt: FirstBad | null = null
  /** Rows that are not covered by a checkpoint yet. */
  uncovered = 0
  #checkpoints: { first: number; last: number; lastAtMs: number } | undefined
  readonly #expected = new Map<number, Expected>()
  /** The chains in #expected that have not been reached yet, in descending order. */
  #inOrder: number[] | undefined
  readonly #onlyChain: number | undefined
  readonly #isExcerpt: boolean
  #chain: number | undefined
  #seq = 0
  #hash = genesis
  #id = Number.NEGATIVE_INFINITY
  /** The latest time in the chain so far. */
  #latest = { seq: 0, at: '', ms: Number.NEGATIVE_INFINITY }
  /** The number of the chain's expected rows found so far. */
  #met = 0

  /** `isExcerpt`: the rows can begin after the first row of the chain, whose link to earlier rows is then not checked. */
  constructor(onlyChain?: number, { isExcerpt = false } = {}) {
    this.#onlyChain = onlyChain
    this.#isExcerpt = isExcerpt
  }

  /** Adds the rows that a checkpoint signed. Call it for all checkpoints, in order, before any other method. */
  expectSigned({ id, at, heads }: CheckedCheckpoint): FirstBad | null {
    this.#checkpoints = { first: this.#checkpoints?.first ?? id, last: id, lastAtMs: Date.parse(at) }
    for (const head of heads) {
      const bad = this.#expect(head, id)
      if (bad) return bad
    }
    return null
  }

  /** Adds a row of the table of heads. A head that is behind the checkpoints adds nothing. */
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
      const change = seq === last ? 'is different' : 'is missing'
      return badRow(
        chain,
        last,
        `was signed by checkpoint ${expected.witnesses.at(-1)} but ${change} in checkpoint ${witness}.`,
      )
    }
    expected.seqs.push(seq)
    expected.hashes.push(hash)
    expected.witnesses.push(witness)
    if (witness !== 'head') expected.covered = seq
    return null
  }

  check({ value, isExact }: Line): FirstBad | null {
    const { type: _type, prev_hash, hash, people, unreadable, ...content } = value as Row
    const { chain, seq } = content
    if (typeof chain !== 'number' || typeof seq !== 'number') {
      return badFile(`A row has an invalid position (chain ${chain}, seq ${seq}).`)
    }
    if (chain !== this.#chain) {
      const bad = this.#endChain() ?? this.#findSkipped(chain) ?? this.#beginChain(chain, seq, prev_hash)
      if (bad) return bad
    }
    const isRepeated = seq === this.#seq && hash === this.#hash
    const bad =
      (isRepeated ? null : this.#checkOrder(chain, seq)) ??
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

  /** Call after the last row. */
  end(): FirstBad | null {
    return this.#endChain() ?? this.#findSkipped(Number.POSITIVE_INFINITY)
  }

  #beginChain(chain: number, seq: number, prevHash: string): FirstBad | null {
    if (this.#chain !== undefined && chain < this.#chain) {
      return badRow(chain, seq, `comes after rows of chain ${this.#chain}: the rows are not in order.`)
    }
    this.chains.push(chain)
    this.#chain = chain
    const beginsLater = this.#isExcerpt && seq > 1
    this.#seq = beginsLater ? seq - 1 : 0
    this.#hash = beginsLater ? prevHash : genesis
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
    const claim = claimOf(expected?.witnesses[this.#met], next)
    return badRow(this.#chain, this.#seq + 1, `is missing: the chain was truncated here, but ${claim}.`)
  }

  /** Finds a chain for which rows are expected but none exist. */
  #findSkipped(next: number): FirstBad | null {
    this.#inOrder ??= [...this.#expected.keys()].sort((a, b) => b - a)
    for (;;) {
      const chain = this.#inOrder.at(-1)
      if (chain === undefined || chain >= next) return null
      this.#inOrder.pop()
      const expected = this.#expected.get(chain)
      if (!expected) continue
      const claim = claimOf(expected.witnesses[0], expected.seqs[0] ?? 1)
      return badRow(chain, 1, `is missing, like the rest of the chain, but ${claim}.`)
    }
  }

  #checkOrder(chain: number, seq: number): FirstBad | null {
    const expected = this.#seq + 1
    if (seq < expected) return badRow(chain, seq, `comes after row ${this.#seq}: it was duplicated or moved.`)
    if (seq > expected) return badRow(chain, expected, `is missing: the next one is row ${seq}.`)
    return null
  }

  #checkLink(chain: number, seq: number, prevHash: string): FirstBad | null {
    if (prevHash === this.#hash) return null
    return badRow(
      chain,
      seq,
      seq === 1
        ? 'is not the start of a chain: its prev_hash is not zero.'
        : `does not follow row ${this.#seq}: its prev_hash is not that row's hash, so one of the two was altered.`,
    )
  }

  #checkPeople(content: RowContent, people: unknown, isRepeated: boolean): FirstBad | null {
    const { chain, seq } = content
    const isList = Array.isArray(people) && people.every((one) => typeof one === 'object' && one !== null)
    if (!isList) return badRow(chain, seq, 'was altered: its personal data is malformed.')
    const digests = new Map([
      ['actor', content.actor_digest],
      ...(content.subject_digest === null ? [] : [['subject', content.subject_digest] as const]),
      ...addressDigests(content.before, 'before'),
      ...addressDigests(content.after, 'after'),
      ...addressDigests(content.related, 'related'),
    ])
    const lists = new PeopleLists(content)
    for (const { salt, ...person } of people as Person[]) {
      // Buffer silently ignores invalid digits.
      const isSalt = typeof salt === 'string' && /^[0-9a-f]{32}$/.test(salt)
      const found = isSalt ? digestOf(salt, { audit_id: content.id, ...person }) : undefined
      if (found !== undefined && lists.take(person.part, found)) continue
      const digest = digests.get(person.part)
      if (digest === undefined)
        return badRow(chain, seq, `has personal data "${person.part}" that it does not refer to.`)
      if (digest !== found) return badRow(chain, seq, altered(person.part))
      digests.delete(person.part)
    }
    const alteredList = lists.findAltered()
    if (alteredList !== undefined) return badRow(chain, seq, altered(alteredList))
    if (!isRepeated) this.erased += digests.size + lists.missing
    return null
  }

  /** Ids and times are assigned while the head of the chain is locked, so both increase with seq. */
  #checkTime({ chain, seq, id, at }: RowContent): void {
    const ms = Date.parse(at)
    if (id <= this.#id)
      this.doubt ??= badRow(
        chain,
        seq,
        `has the id ${id}, which is not greater than that of the previous row.`,
      )
    // Also true for an invalid time. Postern never writes one.
    if (!(ms >= this.#latest.ms - marginMs)) {
      this.doubt ??= badRow(
        chain,
        seq,
        `is dated ${at}, but row ${this.#latest.seq} before it is dated ${this.#latest.at}: it was backdated, or the clock of the database was set back.`,
      )
    }
    this.#id = id
    if (ms > this.#latest.ms) this.#latest = { seq, at, ms }
  }

  /**
   * Each checkpoint covers every chain that has grown, so a row that is older than the last checkpoint must be covered. If
   * the first checkpoints are unknown, the row can be covered by one of them.
   */
  #checkCovered({ chain, seq, at }: RowContent): void {
    this.uncovered++
    const { first, last, lastAtMs } = this.#checkpoints ?? { first: 0, last: 0, lastAtMs: 0 }
    if (first !== 1 || !(Date.parse(at) + marginMs < lastAtMs)) return
    this.doubt ??= badRow(
      chain,
      seq,
      `is older than checkpoint ${last} but not covered by a checkpoint: it was withheld from checkpoints, or backdated.`,
    )
  }

  #checkExpected(content: RowContent): FirstBad | null {
    const { chain } = content
    const expected = this.#expected.get(chain)
    if (this.#seq > (expected?.covered ?? 0)) this.#checkCovered(content)
    if (expected?.seqs[this.#met] !== this.#seq) return null
    const isExpected = expected.hashes[this.#met] === this.#hash
    const witness = expected.witnesses[this.#met++]
    if (isExpected) return null
    return badRow(
      chain,
      this.#seq,
      `differs from the one that ${witness === 'head' ? 'the head of the chain refers to' : `checkpoint ${witness} signed`}: the chain was rewritten.`,
    )
  }
}

const altered = (part: string): string => `is intact, but the personal data of its ${part} was altered.`

/** The addresses of the lists in a row. A list can be verified until one of its addresses is erased. */
class PeopleLists {
  readonly #lists: Map<string, ListInRow>

  constructor({ before, after, related }: RowContent) {
    const lists = [
      ...listDigests(before, 'before'),
      ...listDigests(after, 'after'),
      ...listDigests(related, 'related'),
    ]
    this.#lists = new Map(lists.map(([path, list]) => [path, { ...list, found: new Map() }]))
  }

  /** False if the part does not belong to a list. */
  take(part: unknown, digest: string): boolean {
    const [, path = '', index = ''] = /^~(.*)\.(0|[1-9]\d{0,8})$/.exec(String(part)) ?? []
    const list = this.#lists.get(path)
    if (!list || Number(index) >= list.count || list.found.has(index)) return false
    list.found.set(index, digest)
    return true
  }

  get missing(): number {
    return [...this.#lists.values()].reduce((sum, { count, found }) => sum + count - found.size, 0)
  }

  findAltered(): string | undefined {
    const isAltered = ([, { list_digest, count, found }]: [string, ListInRow]) =>
      found.size === count && listDigest([...found.values()]) !== list_digest
    return [...this.#lists].find(isAltered)?.[0]
  }
}

interface ListInRow {
  list_digest: string
  count: number
  found: Map<string, string>
}

function checkForm(content: RowContent, isExact: boolean): FirstBad | null {
  const { chain, seq, before, after, related, limit_exception } = content
  // Distinguishes SQL null from JSON null. An export writes JSON null as a string.
  const isShaped = [before, after, related, limit_exception].every((part) => typeof part === 'object')
  if (isExact && isShaped) return null
  return badRow(chain, seq, 'was altered: it contains JSON that Postern does not write.')
}

function checkContent(content: RowContent, prevHash: string, hash: string): FirstBad | null {
  if (orUndefined(() => rowHash(prevHash, content)) === hash) return null
  return badRow(content.chain, content.seq, 'was altered: its hash does not match its content.')
}

/** Canonical JSON rejects unpaired surrogates, which a forged file can contain. */
function orUndefined(make: () => string): string | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}

const digestOf = (salt: string, person: PersonContent) => orUndefined(() => personDigest(salt, person))
