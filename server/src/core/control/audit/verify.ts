import type { Db } from '../../../platform/db/db.ts'
import type { CheckedCheckpoint } from './checkpoint-verifier.ts'
import { readMoment } from './export.sql.ts'
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

/** The audit in the database. */
export async function verifyAudit(
  db: Db,
  { projectId, ...options }: VerifyOptions & { projectId?: number | undefined },
): Promise<Verification> {
  const { checkpoint } = await db.read(readMoment)
  const erasedAtFirst = await db.read(countRecordedErasures)
  return verify(
    {
      name: 'the database',
      onlyChain: projectId,
      // Before the rows: whatever a checkpoint names must be there when the rows are read.
      checkpoints: orUnreadable(checkpointLines(db, checkpoint)),
      rows: auditLines(db, { projectId }),
      holdsByNow: async ({ id, hash }) => (await db.read((tx) => findHash(tx, id))) === hash,
      isLater: () => false,
      shouldHold: () => true,
      begin: (chains) => expectHeads(db, chains, projectId),
      finish: async (chains) => (await checkHeads(db, chains, projectId)) ?? (await findStray(db, projectId)),
      async checkErased({ erased }) {
        const erasedAtLast = await db.read(countRecordedErasures)
        // Somebody may have been erased since the first rows were read.
        if (erasedAtFirst <= erased && erased <= erasedAtLast) return {}
        return { bad: badErasures(erased, erasedAtLast) }
      },
    },
    options,
  )
}

const badErasures = (erased: number, recorded: number): FirstBad =>
  badFile(
    `Personal data is missing in ${erased} places, but by the erasures on record it should be ${recorded}: ` +
      'some was deleted without `postern audit erase`, or put back.',
  )

/** The audit in files: a full export, and those that go on from it. */
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
      holdsByNow: async () => false,
      isLater: (checkpoint) => !files.some((file) => reaches(file, checkpoint)),
      shouldHold: (checkpoint) => full.end.project === null && reaches(full, checkpoint),
      begin: async () => {},
      finish: async () => null,
      checkErased: async (chains) => erasedInFiles(chains, files.length),
    },
    options,
  )
}

function erasedInFiles({ erased, erasedByRecord }: ChainVerifier, files: number) {
  if (erased === erasedByRecord) return {}
  // Who was erased since is still in the older files.
  if (erased < erasedByRecord && files > 1) {
    return { note: 'The older exports hold personal data that was erased since: delete them in time.' }
  }
  const { problem } = badErasures(erased, erasedByRecord)
  return { bad: badFile(`${problem} If somebody was erased while the export was made, make another.`) }
}

/** What the database cannot read is a finding like any other. */
async function* orUnreadable(checkpoints: AsyncIterable<Line>): AsyncGenerator<Read> {
  let read = 0
  try {
    for await (const line of checkpoints) {
      yield line
      read++
    }
  } catch (error) {
    if (isOutage(error)) throw error
    yield { bad: badFile(`Behind the first ${read} checkpoints, one in the database cannot be read.`) }
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

/** So that a chain whose end is missing is found at its place among the others. */
async function expectHeads(db: Db, chains: ChainVerifier, onlyChain: number | undefined): Promise<void> {
  for await (const { chain, seq, hash } of headRows(db, onlyChain)) {
    chains.expectHead({ chain: Number(chain), seq: Number(seq), hash })
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
