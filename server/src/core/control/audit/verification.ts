/**
 * Verification of the audit log. docs/operations/audit.md describes what it can and cannot prove.
 */
import { access } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CheckedCheckpoint, CheckpointVerifier } from './checkpoint-verifier.ts'
import type { Read } from './export-files.ts'
import { lineOfFile } from './export-lines.ts'
import { badFile, type FirstBad } from './findings.ts'
import type { VerifyingKeys } from './keys.ts'
import { linesOf } from './text-file.ts'
import { ChainVerifier } from './verifier.ts'

export interface Verification {
  ok: boolean
  /** Whether a known key has signed any checkpoint. Hashes without a signature prove nothing, because anyone can compute them. */
  signed: boolean
  rows: number
  chains: number
  checkpoints: number
  erased: number
  first_bad: FirstBad | null
  notes: string[]
}

export interface VerifyOptions {
  /** If empty, signatures are not checked. */
  keys: VerifyingKeys
  /** The checkpoint file or a copy of it. */
  checkpointFile?: string | undefined
  /** True if a signer writes the file. The last checkpoint in it can then be missing from the database. */
  isFileFirst?: boolean | undefined
  onProgress?: ((rows: number) => void) | undefined
  /** Aborted when the caller no longer waits for the result. */
  signal?: AbortSignal | undefined
}

/** The data to verify: the database, or exports of it. */
export interface Source {
  name: string
  onlyChain: number | undefined
  checkpoints: AsyncIterable<Read>
  rows: AsyncIterable<Read>
  /** Whether a checkpoint that is missing from `checkpoints` was added after `checkpoints` was read. */
  containsNow: (checkpoint: CheckedCheckpoint) => Promise<boolean>
  /** Whether the checkpoint is newer than the source. */
  isLater: (checkpoint: CheckedCheckpoint) => boolean
  /** Whether the source should contain the checkpoint. */
  shouldContain: (checkpoint: CheckedCheckpoint) => boolean
  /** Called after the checkpoints and before the rows. */
  begin: (chains: ChainVerifier) => Promise<void>
  finish: (chains: ChainVerifier) => Promise<FirstBad | null>
  /** Compares missing personal data with recorded erasures. Not called if only one chain is verified. */
  checkErased: (chains: ChainVerifier) => Promise<{ bad?: FirstBad; note?: string }>
}

/** Findings about the checkpoint file. */
interface FileReport {
  /** Reported after the rows, because a missing row is more specific than a missing checkpoint. */
  lacking: FirstBad | null
  notes: string[]
  isSigned: boolean
}

export async function verify(source: Source, options: VerifyOptions): Promise<Verification> {
  const chains = new ChainVerifier(source.onlyChain)
  const checkpoints = new CheckpointVerifier(options.keys, source.name, { mayBeginLater: false })
  const file: FileReport = { lacking: null, notes: [], isSigned: false }
  const people: { bad?: FirstBad; note?: string } = {}
  const first_bad =
    (await checkCheckpoints(source, checkpoints, chains)) ??
    (await checkFile(source, options, checkpoints, chains, file)) ??
    (await checkRows(source, chains, options)) ??
    (await source.finish(chains)) ??
    file.lacking ??
    chains.doubt ??
    Object.assign(people, await checkErased(source, chains)).bad ??
    null
  return {
    ok: first_bad === null,
    signed: checkpoints.isSigned || file.isSigned,
    rows: chains.rows,
    chains: chains.chains.length,
    checkpoints: checkpoints.hashes.size,
    erased: chains.erased,
    first_bad,
    notes: [
      ...file.notes,
      ...notesOn(source, options, checkpoints, chains),
      ...(people.note === undefined ? [] : [people.note]),
    ],
  }
}

async function checkCheckpoints(
  { checkpoints }: Source,
  verifier: CheckpointVerifier,
  chains: ChainVerifier,
): Promise<FirstBad | null> {
  for await (const line of checkpoints) {
    const read = 'bad' in line ? line : verifier.check(line)
    const bad = 'bad' in read ? read.bad : chains.expectSigned(read)
    if (bad) return bad
  }
  return verifier.end()
}

/** Compares the file with the checkpoints read so far. The rows must also match additional checkpoints in the file. */
async function checkFile(
  source: Source,
  { checkpointFile: path, keys, isFileFirst }: VerifyOptions,
  known: CheckpointVerifier,
  chains: ChainVerifier,
  report: FileReport,
): Promise<FirstBad | null> {
  if (path === undefined) return null
  const verifier = new CheckpointVerifier(keys, path, { mayBeginLater: true })
  let lackingId = 0
  let lastId = 0
  for await (const line of linesOfFile(path, report, known.hashes.size > 0)) {
    const read = 'bad' in line ? line : verifier.check(line)
    if ('bad' in read) return read.bad
    lastId = read.id
    if (verifier.hashes.size === 1 && read.id > 1) {
      report.notes.push(
        `${path} begins with checkpoint ${read.id} and does not contain earlier checkpoints. ` +
          'An older file was archived or removed, or no file was configured at that time.',
      )
    }
    const knownHash = known.hashes.get(read.id)
    if (knownHash === read.hash) continue
    if (knownHash !== undefined) {
      return badFile(`Checkpoint ${read.id} differs from the one in ${path}: it was replaced.`)
    }
    if (source.isLater(read)) {
      report.notes.push(
        `The checkpoints in ${path} from ${read.id} on are newer than ${source.name} and were not verified.`,
      )
      break
    }
    if (source.shouldContain(read) && !(await source.containsNow(read))) {
      if (!report.lacking) lackingId = read.id
      report.lacking ??= badFile(
        `Checkpoint ${read.id} is only in ${path}: it was removed from ${source.name}.`,
      )
    }
    const bad = chains.expectSigned(read)
    if (bad) return bad
  }
  report.isSigned = verifier.isSigned
  if (isFileFirst && report.lacking && lackingId === lastId) {
    report.lacking = null
    report.notes.push(
      `Checkpoint ${lastId} is in ${path} and not yet in the database: the next checkpoint adds it.`,
    )
  }
  if (verifier.hashes.size === 0 && known.hashes.size > 0 && report.notes.length === 0) {
    report.lacking ??= badFile(
      `${path} is missing or empty, although checkpoints exist: it was removed, or was configured only recently.`,
    )
  }
  return verifier.end()
}

async function* linesOfFile(path: string, { notes }: FileReport, isExpected: boolean): AsyncGenerator<Read> {
  try {
    if (!(await appears(path, isExpected ? appearingTries : 1))) return
    for await (const { text, isTorn } of linesOf(path)) {
      if (isTorn) {
        notes.push(`The last line of ${path} is incomplete; the next checkpoint completes it.`)
        return
      }
      yield lineOfFile(text) ?? {
        bad: badFile(`${path} contains a line that is not JSON: ${text.slice(0, 80)}`),
      }
    }
  } catch (error) {
    yield { bad: badFile(`${path} cannot be read: ${(error as Error).message}.`) }
  }
}

const appearingTries = 10
const appearingPauseMs = 200

/** The file is created shortly after the first checkpoint is written to the database. */
async function appears(path: string, tries: number): Promise<boolean> {
  for (let tried = 1; ; tried++) {
    try {
      await access(path)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      if (tried === tries) return false
      await sleep(appearingPauseMs)
    }
  }
}

const progressEvery = 1000

async function checkRows(
  { rows, begin }: Source,
  chains: ChainVerifier,
  { onProgress, signal }: VerifyOptions,
): Promise<FirstBad | null> {
  await begin(chains)
  for await (const line of rows) {
    if (signal?.aborted) return badFile('The verification was stopped before it finished.')
    const bad = 'bad' in line ? line.bad : chains.check(line)
    if (bad) return bad
    if (chains.rows % progressEvery === 0) onProgress?.(chains.rows)
  }
  return chains.end()
}

async function checkErased(
  { onlyChain, checkErased }: Source,
  chains: ChainVerifier,
): Promise<{ bad?: FirstBad; note?: string }> {
  if (onlyChain === undefined) return checkErased(chains)
  if (chains.erased === 0) return {}
  return { note: 'Erasures were not checked: that requires all chains.' }
}

function notesOn(
  { onlyChain }: Source,
  { keys, checkpointFile }: VerifyOptions,
  checkpoints: CheckpointVerifier,
  chains: ChainVerifier,
): string[] {
  const notes: string[] = []
  if (onlyChain !== undefined) notes.push(`Only chain ${onlyChain} was verified.`)
  if (keys.size === 0 && checkpoints.hashes.size > 0) {
    notes.push('Signatures were not checked: no public key was provided.')
  }
  if (chains.uncovered > 0) notes.push(`${chains.uncovered} rows are not covered by a checkpoint yet.`)
  if (checkpointFile === undefined) {
    notes.push(
      'No checkpoint file was provided: rows removed together with their checkpoints cannot be detected.',
    )
  }
  return notes
}
