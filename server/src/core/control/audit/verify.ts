import type { Db } from '../../../platform/db/db.ts'
import type { CheckedCheckpoint } from './checkpoint-verifier.ts'
import { readSnapshot } from './export.sql.ts'
import { auditLines, checkpointLines, isOutage, strayLines } from './export.ts'
import {
  checkpointsIn,
  type ExportFile,
  mergedRows,
  openExports,
  type Read,
  strayPerson,
} from './export-files.ts'
import type { Line } from './export-lines.ts'
import { badFile, type FirstBad } from './findings.ts'
import { type Verification, type VerifyOptions, verify } from './verification.ts'
import type { ChainVerifier } from './verifier.ts'
import {
  countRecordedErasures,
  findHash,
  findHeadless,
  type HeadRow,
  headPageSize,
  readHeads,
} from './verify.sql.ts'

export type { Verification }

/** Verifies the audit log in the database. */
export async function verifyAudit(
  db: Db,
  { projectId, ...options }: VerifyOptions & { projectId?: number | undefined },
): Promise<Verification> {
  const { checkpoint } = await db.read(readSnapshot)
  const erasedBefore = await db.read(countRecordedErasures)
  return verify(
    {
      name: 'the database',
      onlyChain: projectId,
      // Read before the rows: the rows listed in a checkpoint must exist when the rows are read.
      checkpoints: orUnreadable(checkpointLines(db, checkpoint)),
      rows: auditLines(db, { projectId }),
      containsNow: async ({ id, hash }) => (await db.read((tx) => findHash(tx, id))) === hash,
      isLater: () => false,
      shouldContain: () => true,
      begin: (chains) => expectHeads(db, chains, projectId),
      finish: async (chains) => (await checkHeads(db, chains, projectId)) ?? (await findStray(db, projectId)),
      async checkErased({ erased }) {
        const erasedAfter = await db.read(countRecordedErasures)
        // A person's data may have been erased after the first rows were read.
        if (erasedBefore <= erased && erased <= erasedAfter) return {}
        return { bad: badErasures(erased, erasedAfter) }
      },
    },
    options,
  )
}

const badErasures = (erased: number, recorded: number): FirstBad =>
  badFile(
    `Personal data is missing in ${erased} places, but the recorded erasures account for ${recorded}: ` +
      'some was deleted without `postern audit erase`, or restored.',
  )

/** Verifies exported files: a full export and the exports that continue it. */
export async function verifyExport(paths: string[], options: VerifyOptions): Promise<Verification> {
  const { files, bad } = await openExports(paths)
  if (!bad) return verifyFiles(files, options)
  return {
    ok: false,
    signed: false,
    rows: 0,
    chains: 0,
    checkpoints: 0,
    erased: 0,
    first_bad: bad,
    notes: [],
  }
}

/**
 * A checkpoint transaction that began at least this long before an export has either committed by then or will never commit,
 * because its statements have a shorter timeout.
 */
const marginMs = 60_000

export function verifyFiles(files: ExportFile[], options: VerifyOptions): Promise<Verification> {
  const full = files.find(({ end }) => end.after === null)
  if (!full) throw new Error('openExports must reject files without a full export')
  const reaches = ({ end }: ExportFile, { at }: CheckedCheckpoint) =>
    Date.parse(at) + marginMs < Date.parse(end.at)
  return verify(
    {
      name: full.path,
      onlyChain: full.end.project ?? undefined,
      checkpoints: checkpointsIn(full),
      rows: mergedRows(files),
      containsNow: async () => false,
      isLater: (checkpoint) => !files.some((file) => reaches(file, checkpoint)),
      shouldContain: (checkpoint) => full.end.project === null && reaches(full, checkpoint),
      begin: async () => {},
      finish: async () => null,
      checkErased: async (chains) => erasedInFiles(chains, files.length),
    },
    options,
  )
}

function erasedInFiles({ erased, erasedByRecord }: ChainVerifier, files: number) {
  if (erased === erasedByRecord) return {}
  // The older files still contain personal data that was erased later.
  if (erased < erasedByRecord && files > 1) {
    return { note: 'The older exports contain personal data that was erased later. Delete them.' }
  }
  const { problem } = badErasures(erased, erasedByRecord)
  return { bad: badFile(`${problem} If a person was erased during the export, export again.`) }
}

/** Reports a checkpoint that the database cannot read as a finding. */
async function* orUnreadable(checkpoints: AsyncIterable<Line>): AsyncGenerator<Read> {
  let read = 0
  try {
    for await (const line of checkpoints) {
      yield line
      read++
    }
  } catch (error) {
    if (isOutage(error)) throw error
    yield { bad: badFile(`The checkpoint after the first ${read} in the database cannot be read.`) }
  }
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

/** Expects every head, so that missing last rows are reported in the order of the chains. */
async function expectHeads(db: Db, chains: ChainVerifier, onlyChain: number | undefined): Promise<void> {
  for await (const { chain, seq, hash } of headRows(db, onlyChain)) {
    chains.expectHead({ chain: Number(chain), seq: Number(seq), hash })
  }
}

/** Compares the table of heads with the last rows of the chains, in both directions. */
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
    problem: `Chain ${chain} ends with row ${end}, but its head refers to row ${head}: one of the two was altered.`,
  }
}

async function findStray(db: Db, projectId: number | undefined): Promise<FirstBad | null> {
  for await (const line of strayLines(db, projectId)) return strayPerson(line)
  return null
}
