/**
 * Verifies an evidence file without a database: the chain of its lines, the signature in the last line, and the rows of the
 * audit log with the checkpoint that covers them. All input can be forged.
 */
import { CheckpointVerifier } from '../audit/checkpoint-verifier.ts'
import { type EvidenceStatement, isEvidenceSigned } from '../audit/evidence-signature.ts'
import { type Line, lineOfFile } from '../audit/export-lines.ts'
import type { VerifyingKeys } from '../audit/keys.ts'
import { byteLinesOf } from '../audit/text-file.ts'
import { ChainVerifier } from '../audit/verifier.ts'
import { type EvidenceLine, lineHash, noLines } from './lines.ts'

export interface EvidenceVerification {
  ok: boolean
  /** Whether the signature was checked with a known key. */
  signed: boolean
  lines: number
  /** Rows of the audit log. */
  acts: number
  /** From the first line. Null if it cannot be read. */
  evidence: { id: number; project_id: number; from: string; to: string; signed_at: string | null } | null
  first_bad: { line: number; problem: string } | null
  notes: string[]
}

/** The first problem. `line` counts from 1. */
class Bad extends Error {
  readonly line: number

  constructor(line: number, problem: string) {
    super(problem)
    this.line = line
  }
}

interface Header {
  id: number
  project: { id: number }
  from: string
  to: string
}

type Signature = Omit<EvidenceStatement, 'hash'> & { type: string; signature: string }

export const verifyEvidenceFile = (path: string, keys: VerifyingKeys): Promise<EvidenceVerification> =>
  verifyEvidence(byteLinesOf(path), keys)

export async function verifyEvidence(
  lines: AsyncIterable<{ bytes: Buffer; isTorn: boolean }>,
  keys: VerifyingKeys,
): Promise<EvidenceVerification> {
  const verifier = new EvidenceVerifier(keys)
  let bad: Bad | null = null
  try {
    for await (const { bytes, isTorn } of lines) verifier.check(bytes, isTorn)
    verifier.end()
  } catch (error) {
    if (!(error instanceof Bad)) throw error
    bad = error
  }
  return {
    ok: bad === null,
    signed: verifier.isSigned,
    lines: verifier.lines,
    acts: verifier.acts,
    evidence: verifier.evidence,
    first_bad: bad && { line: bad.line, problem: bad.message },
    notes: verifier.notes,
  }
}

class EvidenceVerifier {
  isSigned = false
  lines = 0
  readonly notes: string[] = []
  readonly #keys: VerifyingKeys
  readonly #checkpoints: CheckpointVerifier
  #chains: ChainVerifier | undefined
  #hash = noLines.hash
  #header: Header | undefined
  #signature: Signature | undefined
  /** A line whose `prev` is not the hash of the line before it. The next line shows which of the two was altered. */
  #broken: number | undefined

  constructor(keys: VerifyingKeys) {
    this.#keys = keys
    this.#checkpoints = new CheckpointVerifier(keys, 'the file', { mayBeginLater: true })
  }

  get acts(): number {
    return this.#chains?.rows ?? 0
  }

  get evidence(): EvidenceVerification['evidence'] {
    if (!this.#header) return null
    const { id, project, from, to } = this.#header
    const signed_at = this.isSigned ? (this.#signature?.at ?? null) : null
    return { id, project_id: project.id, from, to, signed_at }
  }

  check(bytes: Buffer, isTorn: boolean): void {
    const n = this.lines + 1
    if (this.#signature) throw new Bad(n, 'There is a line after the signature.')
    if (isTorn) throw new Bad(n, 'The line is incomplete: the file was truncated or altered.')
    const { line, content } = readLine(bytes, n)
    if (this.#broken !== undefined) throw this.#altered(this.#broken, line.prev)
    this.lines = n
    if (line.prev !== this.#hash) this.#broken = n
    this.#hash = lineHash(bytes)
    if (this.#broken === undefined) this.#checkContent(n, line, content)
    // No line follows the signature, so the signature itself shows whether it was altered.
    else if (line.content.type === 'signature') {
      throw new Bad(this.#isProved(line) ? n - 1 : n, altered)
    }
  }

  end(): void {
    const n = this.lines
    if (this.#broken !== undefined) throw new Bad(this.#broken, altered)
    if (!this.#signature) throw new Bad(n + 1, 'The signature is missing: the file was truncated.')
    const { key_id } = this.#signature
    if (this.#keys.size === 0) this.notes.push('The signature was not checked: no public key was provided.')
    else if (!this.isSigned)
      throw new Bad(n, `The key "${key_id}" is not known here. Pass its public key with --public-key.`)
    const bad = this.#chains?.end() ?? this.#checkpoints.end()
    if (bad) throw new Bad(n, bad.problem)
    if (this.#chains?.doubt) this.notes.push(this.#chains.doubt.problem)
    if (this.#chains && this.#chains.uncovered > 0)
      this.notes.push(
        `${this.#chains.uncovered} audit entries are not covered by the checkpoint. Only the signature of the file proves them.`,
      )
  }

  /** Which of two lines was altered: the next line has the hash of the later one. */
  #altered(broken: number, nextPrev: string): Bad {
    return new Bad(nextPrev === this.#hash ? broken - 1 : broken, altered)
  }

  #checkContent(n: number, line: EvidenceLine, content: Line): void {
    const { type } = line.content
    if (n === 1) this.#begin(line.content)
    else if (type === 'signature') this.#checkSignature(n, line)
    else if (type === 'audit') this.#checkAct(n, content)
    else if (type === 'checkpoint') {
      const checked = this.#checkpoints.check(content)
      this.#checkFound(n, 'bad' in checked ? checked.bad : this.#chains?.expectSigned(checked))
    } else if (!['intervention', 'day', 'message'].includes(type)) {
      throw new Bad(n, `The line has the unknown type "${type}".`)
    }
  }

  #checkAct(n: number, content: Line): void {
    const isFirst = this.acts === 0
    this.#checkFound(n, this.#chains?.check(content))
    const { seq, at } = content.value as { seq: number; at: string }
    // Usually the first row is the one before the range.
    if (isFirst && seq > 1 && !(Date.parse(at) < Date.parse(this.#header?.from ?? '')))
      this.notes.push(
        `The audit entries begin with number ${seq}, which is in the range: earlier ones may be missing.`,
      )
  }

  #checkFound(n: number, bad: { problem: string } | null | undefined): void {
    if (bad) throw new Bad(n, bad.problem)
  }

  #begin(content: { type: string }): void {
    const header = content as { type: string; version: number } & Partial<Header>
    const isHeader =
      header.type === 'evidence' &&
      [header.id, header.project?.id].every(Number.isSafeInteger) &&
      [header.from, header.to].every((time) => typeof time === 'string' && timestamp.test(time))
    if (!isHeader) throw new Bad(1, 'The first line is not the beginning of an evidence file.')
    if (header.version !== 1) throw new Bad(1, `Version ${header.version} of the format is not known here.`)
    this.#header = header as Header
    this.#chains = new ChainVerifier(this.#header.project.id, { isExcerpt: true })
  }

  #checkSignature(n: number, line: EvidenceLine): void {
    const signature = line.content as Signature
    const { evidence_id, project_id, lines, key_id } = signature
    const isOfFile =
      evidence_id === this.#header?.id && project_id === this.#header.project.id && lines === n - 1
    if (!isOfFile) throw new Bad(n, 'The signature is that of another file.')
    if (this.#keys.has(key_id) && !this.#isProved(line))
      throw new Bad(n, 'The signature is invalid: the file was altered, or signed with another key.')
    this.#signature = signature
    this.isSigned = this.#keys.has(key_id)
  }

  #isProved({ prev, content }: EvidenceLine): boolean {
    const { type: _type, signature, ...statement } = content as Signature
    const key = this.#keys.get(statement.key_id)
    // Buffer silently ignores invalid digits.
    const isHex = typeof signature === 'string' && /^[0-9a-f]{128}$/.test(signature)
    if (!isHex || key === undefined) return false
    try {
      return isEvidenceSigned(key, { ...statement, hash: prev }, signature)
    } catch {
      // Canonical JSON rejects unpaired surrogates, which a forged file can contain.
      return false
    }
  }
}

const timestamp = /^\d{4}-\d\d-\d\dT[\d:.]{8,15}Z$/

const altered = 'The line was altered: the next line has a different hash of it.'

function readLine(bytes: Buffer, n: number): { line: EvidenceLine; content: Line } {
  const text = bytes.toString()
  const read = lineOfFile(text)
  const { n: number, prev, content, ...more } = (read?.value ?? {}) as Partial<EvidenceLine>
  const isLine =
    read?.isExact &&
    // Invalid UTF-8 is read as U+FFFD.
    Buffer.from(text).equals(bytes) &&
    Object.keys(more).length === 0 &&
    Number.isSafeInteger(number) &&
    typeof prev === 'string' &&
    typeof content?.type === 'string'
  if (!isLine) throw new Bad(n, 'The line was altered: it is not a line of an evidence file.')
  if (number !== n) {
    const where = (number as number) > n ? 'is missing' : 'was added or moved'
    throw new Bad(n, `Line ${n} ${where}: its place has line ${number}.`)
  }
  return {
    line: { n, prev, content } as EvidenceLine,
    content: { text, value: content, isExact: true },
  }
}
