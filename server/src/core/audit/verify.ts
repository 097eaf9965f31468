import { existsSync } from 'node:fs'
import type { Db } from '../../platform/db/db.ts'
import { readMoment } from './export.sql.ts'
import { auditLines, checkpointLines, strayLines } from './export.ts'
import {
  checkpointsIn,
  type ExportFile,
  mergedRows,
  openExports,
  type Read,
  strayPerson,
} from './export-files.ts'
import type { VerifyingKeys } from './keys.ts'
import { lineOfFile } from './lines.ts'
import { linesOf } from './text-file.ts'
import {
  badFile,
  ChainVerifier,
  type CheckedCheckpoint,
  CheckpointVerifier,
  type FirstBad,
} from './verifier.ts'
import { findHash, findHeadless, type HeadRow, headPageSize, readHeads } from './verify.sql.ts'

/**
 * Whether the audit is as it was written. What this proves, and what it cannot, is told in
 * docs/operations/audit.md.
 */
export interface Verification {
  ok: boolean
  rows: number
  chains: number
  checkpoints: number
  erased: number
  first_bad: FirstBad | null
  notes: string[]
}

export interface VerifyOptions {
  /** None: signatures are not checked. */
  keys: VerifyingKeys
  /** The file that checkpoints are also written to, or a copy of it. */
  checkpointFile?: string | undefined
  onProgress?: ((rows: number) => void) | undefined
}

/** The audit in the database. */
export async function verifyAudit(
  db: Db,
  { projectId, ...options }: VerifyOptions & { projectId?: number | undefined },
): Promise<Verification> {
  const { checkpoint } = await db.read(readMoment)
  return verify(
    {
      name: 'the database',
      onlyChain: projectId,
      // Before the rows: whatever a checkpoint names must be there when the rows are read.
      checkpoints: checkpointLines(db, checkpoint),
      rows: auditLines(db, { projectId }),
      // The file may have got one since the checkpoints were read.
      isLater: async ({ id, hash }) => (await db.read((tx) => findHash(tx, id))) === hash,
      shouldHold: () => true,
      begin: (chains) => expectHeads(db, chains, projectId),
      finish: async (chains) => (await checkHeads(db, chains, projectId)) ?? (await findStray(db, projectId)),
    },
    options,
  )
}

/** The audit in files: a full export, and those that go on from it. */
export async function verifyExport(paths: string[], options: VerifyOptions): Promise<Verification> {
  const { files, bad } = await openExports(paths)
  if (!bad) return verifyFiles(files, options)
  return { ok: false, rows: 0, chains: 0, checkpoints: 0, erased: 0, first_bad: bad, notes: [] }
}

/**
 * A checkpoint that began so long before an export has been committed by then, or never was: no statement of
 * one may take as long.
 */
const marginMs = 60_000

export function verifyFiles(files: ExportFile[], options: VerifyOptions): Promise<Verification> {
  const full = files.find(({ end }) => end.after === null)
  if (!full) throw new Error('openExports lets no set of files pass without a full one')
  const reaches = ({ end }: ExportFile, { at }: CheckedCheckpoint) =>
    Date.parse(at) + marginMs < Date.parse(end.at)
  return verify(
    {
      name: full.path,
      onlyChain: full.end.project ?? undefined,
      checkpoints: checkpointsIn(full),
      rows: mergedRows(files),
      isLater: async (checkpoint) => !files.some((file) => reaches(file, checkpoint)),
      shouldHold: (checkpoint) => full.end.project === null && reaches(full, checkpoint),
      begin: async () => {},
      finish: async () => null,
    },
    options,
  )
}

interface Source {
  name: string
  onlyChain: number | undefined
  checkpoints: AsyncIterable<Read>
  rows: AsyncIterable<Read>
  /** Of a checkpoint in the file alone: whether the source is older, so that it cannot tell. */
  isLater: (checkpoint: CheckedCheckpoint) => Promise<boolean>
  /** And whether it ought to be among the source's own. */
  shouldHold: (checkpoint: CheckedCheckpoint) => boolean
  /** Before the rows, after the checkpoints. */
  begin: (chains: ChainVerifier) => Promise<void>
  finish: (chains: ChainVerifier) => Promise<FirstBad | null>
}

async function verify(source: Source, options: VerifyOptions): Promise<Verification> {
  const chains = new ChainVerifier(source.onlyChain)
  const checkpoints = new CheckpointVerifier(options.keys, source.name, { mayBeginLater: false })
  const file = { lacking: null as FirstBad | null, notes: [] as string[] }
  const first_bad =
    (await checkCheckpoints(source, checkpoints, chains)) ??
    (await checkFile(source, options, checkpoints, chains, file)) ??
    (await checkRows(source, chains, options.onProgress)) ??
    (await source.finish(chains)) ??
    file.lacking
  return {
    ok: first_bad === null,
    rows: chains.rows,
    chains: chains.chains.length,
    checkpoints: checkpoints.hashes.size,
    erased: chains.erased,
    first_bad,
    notes: [...file.notes, ...notesOn(source, options, checkpoints, chains)],
  }
}

async function checkCheckpoints(
  { checkpoints }: Source,
  verifier: CheckpointVerifier,
  chains: ChainVerifier,
): Promise<FirstBad | null> {
  for await (const line of checkpoints) {
    const read = 'bad' in line ? line : verifier.take(line)
    if ('bad' in read) return read.bad
    for (const head of read.heads) {
      const bad = chains.expect(head, read.id)
      if (bad) return bad
    }
  }
  return verifier.end()
}

/**
 * The file against the checkpoints read so far. What it has beyond them is expected of the rows too; that
 * the others lack it is told after the rows, because a missing row says more.
 */
async function checkFile(
  source: Source,
  { checkpointFile: path, keys }: VerifyOptions,
  known: CheckpointVerifier,
  chains: ChainVerifier,
  found: { lacking: FirstBad | null; notes: string[] },
): Promise<FirstBad | null> {
  if (path === undefined) return null
  if (!existsSync(path)) {
    found.notes.push(`There is no file ${path}: rows cut off together with their checkpoints would not show.`)
    return null
  }
  const verifier = new CheckpointVerifier(keys, path, { mayBeginLater: true })
  for await (const { text, isTorn } of linesOf(path)) {
    if (isTorn) {
      found.notes.push(`The last line of ${path} is incomplete; the next checkpoint finishes it.`)
      break
    }
    const line = lineOfFile(text)
    if (line === undefined) return badFile(`${path} holds a line that is no JSON: ${text.slice(0, 80)}`)
    const read = verifier.take(line)
    if ('bad' in read) return read.bad
    const there = known.hashes.get(read.id)
    if (there === read.hash) continue
    if (there !== undefined) {
      return badFile(`Checkpoint ${read.id} is not the one in ${path}: it was replaced.`)
    }
    if (await source.isLater(read)) {
      found.notes.push(
        `${path} has checkpoints from ${read.id} on that are newer than ${source.name}; left out.`,
      )
      break
    }
    if (source.shouldHold(read)) {
      found.lacking ??= badFile(`Checkpoint ${read.id} is in ${path} and nowhere else: it was removed.`)
    }
    for (const head of read.heads) {
      const bad = chains.expect(head, read.id)
      if (bad) return bad
    }
  }
  return verifier.end()
}

const progressEvery = 1000

async function checkRows(
  { rows, begin }: Source,
  chains: ChainVerifier,
  onProgress: VerifyOptions['onProgress'],
): Promise<FirstBad | null> {
  await begin(chains)
  for await (const line of rows) {
    const bad = 'bad' in line ? line.bad : chains.take(line)
    if (bad) return bad
    if (chains.rows % progressEvery === 0) onProgress?.(chains.rows)
  }
  return chains.end()
}

function notesOn(
  { onlyChain }: Source,
  { keys, checkpointFile }: VerifyOptions,
  checkpoints: CheckpointVerifier,
  chains: ChainVerifier,
): string[] {
  const notes: string[] = []
  if (onlyChain !== undefined) notes.push(`Only chain ${onlyChain} was looked at.`)
  if (keys.size === 0 && checkpoints.hashes.size > 0) {
    notes.push('Signatures were not checked, because no public key was given.')
  }
  if (chains.uncovered > 0) notes.push(`${chains.uncovered} rows are covered by no checkpoint yet.`)
  if (checkpointFile === undefined) {
    notes.push('No checkpoint file was given: rows cut off together with their checkpoints would not show.')
  }
  return notes
}

async function* headRows(db: Db, onlyChain: number | undefined): AsyncGenerator<HeadRow> {
  for (let after = String(-(2n ** 63n)); ; ) {
    const page = await db.read((tx) => readHeads(tx, after, onlyChain))
    yield* page
    const last = page.at(-1)
    if (!last || page.length < headPageSize) return
    after = last.chain
  }
}

/** So that a chain whose end is missing is found at its place among the others. */
async function expectHeads(db: Db, chains: ChainVerifier, onlyChain: number | undefined): Promise<void> {
  for await (const { chain, seq, hash } of headRows(db, onlyChain)) {
    chains.expect({ chain: Number(chain), seq: Number(seq), hash }, 'head')
  }
}

/** The table of heads against the ends of the chains, in both directions. */
async function checkHeads(
  db: Db,
  { chains }: ChainVerifier,
  onlyChain: number | undefined,
): Promise<FirstBad | null> {
  for await (const head of headRows(db, onlyChain)) {
    if (!head.isRight) return badHead(head)
  }
  for (let i = 0; i < chains.length; i += headPageSize) {
    const chain = await db.read((tx) => findHeadless(tx, chains.slice(i, i + headPageSize)))
    if (chain !== undefined)
      return { chain, seq: null, problem: `Chain ${chain} has no head: it was removed.` }
  }
  return null
}

function badHead({ chain, seq, last }: HeadRow): FirstBad {
  const [head, end] = [Number(seq), Number(last ?? 0)]
  return {
    chain: Number(chain),
    seq: head === end ? end : Math.min(head, end) + 1,
    problem: `Chain ${chain} ends with row ${end}, but its head says row ${head}: one of the two was altered.`,
  }
}

async function findStray(db: Db, projectId: number | undefined): Promise<FirstBad | null> {
  for await (const line of strayLines(db, projectId)) return strayPerson(line)
  return null
}
