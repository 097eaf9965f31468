/**
 * Evidence: a signed file with what is known about a project in a time range, for a recipient outside the installation. This
 * side has the requests and the stored lines; core/mail/evidence makes them.
 */
import type { Static } from 'typebox'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { Db, OneStatement, ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { timestampOf } from '../../shared/timestamp.ts'
import { findExcerpt } from '../audit/excerpt.ts'
import { lockProject } from '../projects/projects.ts'
import { lockUserRow } from '../users/users.ts'
import {
  count,
  countRequestedBy,
  deleteExpired,
  type EvidenceRow,
  find,
  findChunkAfter,
  findPending,
  insert,
  insertChunk,
  listByProject,
  listPending,
  type Position,
  type Written,
  writeProblem,
  writeStep,
} from './evidence.sql.ts'
import { linesAfter } from './lines.ts'
import { type Evidence, maxRangeDays } from './wire.ts'

export type { EvidenceRow, Position }
export { findPending, listPending }

export const listEvidence = listByProject

/** A project cannot have more files at the same time. */
export const maxFiles = 20
/** Rights that only allow reading must not be enough to fill the disk, with a few files of each project. */
export const maxFilesOfRequester = 100
export const maxActs = 100_000
/** Far more than a file with `maxActs` usually has. */
const maxBytes = 256 * 2 ** 20
const chunkBytes = 2 ** 20
const dayMs = 24 * 3_600_000

export const evidenceView = (row: EvidenceRow): Static<typeof Evidence> => ({
  id: row.id,
  project_id: row.project_id,
  requested_by: { id: row.requested_by, email: row.requester_email },
  from: row.range_from.toISOString(),
  to: row.range_to.toISOString(),
  message_ids: row.message_ids,
  status: statusOf(row),
  progress: progressOf(row),
  problem: row.problem,
  lines: row.lines,
  size_bytes: row.bytes,
  file: row.section === 'done' ? `/v1/admin/projects/${row.project_id}/evidence/${row.id}/file` : null,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  expires_at: row.expires_at.toISOString(),
})

function statusOf({ problem, section }: EvidenceRow): Static<typeof Evidence>['status'] {
  if (problem !== null) return 'failed'
  if (section === 'header') return 'queued'
  if (section === 'signature') return 'signing'
  return section === 'done' ? 'ready' : 'building'
}

/** The number of lines is estimated at the start. */
const progressOf = ({ section, lines, expected_lines }: EvidenceRow): number =>
  section === 'done' ? 100 : Math.min(99, Math.floor((100 * lines) / expected_lines))

export interface RequestedEvidence {
  from: string
  to: string
  message_ids?: string[]
}

/** Returns the id. The caller sends the job. */
export async function requestEvidence(
  tx: Tx,
  { projectId, requestedBy }: { projectId: number; requestedBy: number },
  request: RequestedEvidence,
): Promise<number> {
  // Before the project, as in other transactions.
  await lockUserRow(tx, requestedBy)
  await lockProject(tx, projectId)
  const range = rangeOf(request, await databaseTime(tx))
  const { first, last } = await findExcerpt(tx, projectId, range)
  if (last - first >= maxActs) {
    throw new PosternError(
      'validation_failed',
      `The range contains more than ${maxActs} audit entries. Choose a shorter range.`,
    )
  }
  if ((await count(tx, projectId)) >= maxFiles) {
    throw new PosternError(
      'limit_exceeded',
      `Project ${projectId} has ${maxFiles} evidence files. Each is deleted 7 days after it was requested.`,
    )
  }
  if ((await countRequestedBy(tx, requestedBy)) >= maxFilesOfRequester) {
    throw new PosternError(
      'limit_exceeded',
      `You have requested ${maxFilesOfRequester} evidence files. Each is deleted 7 days after it was requested.`,
    )
  }
  return insert(tx, { projectId, requestedBy, ...range, messageIds: request.message_ids ?? [] })
}

function rangeOf(request: RequestedEvidence, now: Date): { from: Date; to: Date } {
  const from = timestampOf(request.from, 'from')
  const until = timestampOf(request.to, 'to')
  const to = until > now ? now : until
  if (from >= to) {
    throw new PosternError('validation_failed', '"from" must be before "to" and must not be in the future.')
  }
  if (to.getTime() - from.getTime() > maxRangeDays * dayMs) {
    throw new PosternError('validation_failed', `The range cannot be longer than ${maxRangeDays} days.`)
  }
  return { from, to }
}

export async function findEvidence(tx: ReadTx, projectId: number, id: number): Promise<EvidenceRow> {
  const row = await find(tx, projectId, id)
  if (!row) throw new PosternError('not_found', `There is no evidence ${id} in project ${projectId}.`)
  return row
}

/** The content of the next lines, and where the following step continues. */
export interface Step extends Position {
  contents: readonly object[]
  plan?: NonNullable<Written['plan']>
}

/** Returns false if there is nothing left to do: another worker has continued it, or it cannot be made. */
export async function appendStep(tx: Tx, row: EvidenceRow, step: Step): Promise<boolean> {
  const { section, section_after, plan = null } = step
  const { text, tail } = linesAfter({ lines: row.lines, hash: row.last_hash.toString('hex') }, step.contents)
  const content = Buffer.from(text)
  const bytes = row.bytes + content.length
  if (bytes > maxBytes) {
    await writeProblem(tx, row, 'The file is too large. Choose a shorter range or fewer messages.')
    return false
  }
  const written = { section, section_after, lines: tail.lines, bytes, last_hash: tail.hash, plan }
  if (!(await writeStep(tx, row, written))) return false
  for (let part = 0; part * chunkBytes < content.length; part++) {
    const chunk = content.subarray(part * chunkBytes, (part + 1) * chunkBytes)
    await insertChunk(tx, row, { line: row.lines, part, content: chunk })
  }
  return true
}

/** The bytes of a finished file. Throws before the first chunk if there is none. */
export async function openFile(db: Db, projectId: number, id: number): Promise<AsyncGenerator<Buffer, void>> {
  const row = await db.read((tx) => findEvidence(tx, projectId, id))
  if (row.section !== 'done') {
    throw new PosternError('not_found', `The file of evidence ${id} is not ready (${statusOf(row)}).`)
  }
  return chunksOf(db, row)
}

async function* chunksOf(db: Db, { project_id, id }: EvidenceRow): AsyncGenerator<Buffer, void> {
  for (let position = { line: -1, part: 0 }; ; ) {
    const after = position
    const chunk = await db.read((tx) => findChunkAfter(tx, project_id, id, after))
    if (!chunk) return
    yield chunk.content
    position = chunk
  }
}

/** Few, because each has up to 256 MiB. */
const purgedFiles = 20

export const purgeEvidence = (tx: OneStatement): Promise<number> => deleteExpired(tx, purgedFiles)
