/**
 * Makes the files of control.evidence, in steps. Each step reads a bounded part, then stores it together with the position of
 * the next one, so that another worker can continue at any time. The databases of mail are read outside the transaction.
 */
import type { MailOf } from '../../../platform/db/cells.ts'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { UnscopedDb } from '../../../platform/db/db.ts'
import type { Logger } from '../../../platform/telemetry/log.ts'
import { runCheckpoints, type SignerConnection } from '../../control/audit/checkpoints.ts'
import { checkpointLine, excerptLines, findExcerpt } from '../../control/audit/excerpt.ts'
import { signatureOf } from '../../control/audit/sign-evidence.ts'
import {
  appendStep,
  type EvidenceRow,
  findPending,
  listPending,
  type Step,
} from '../../control/evidence/evidence.ts'
import { interventionView, listWithin } from '../../control/interventions/interventions.ts'
import { findProject } from '../../control/projects/projects.ts'
import type { MasterKeys } from '../../control/secrets/master-keys.ts'
import { messageTimeline } from '../messages/messages.ts'
import { findDaysWithin } from '../usage/usage.ts'

export interface EvidenceDeps {
  db: UnscopedDb
  mailOf: MailOf
  masterKeys: MasterKeys
  /** `elsewhere`: another worker signs. Undefined: no signer. */
  auditSigner?: SignerConnection | 'elsewhere' | undefined
  auditCheckpointFile: string | undefined
  /** The version of Postern. */
  version: string
  log: Logger
}

const actsAtOnce = 200
const interventionsAtOnce = 100
const filesAtOnce = 100

/** Continues all files. A failure of one does not delay the others. */
export async function makeEvidence(deps: EvidenceDeps, signal: AbortSignal): Promise<void> {
  const failures: unknown[] = []
  for (const pending of await deps.db.readOne((tx) => listPending(tx, filesAtOnce))) {
    try {
      while (!signal.aborted && (await makeStep(deps, pending))) {}
    } catch (error) {
      failures.push(error)
    }
  }
  const [first] = failures
  if (first) throw failures.length === 1 ? first : new AggregateError(failures, 'several files failed')
}

/** Returns false if there is nothing left to do now. */
async function makeStep(
  deps: EvidenceDeps,
  { project_id, id }: { project_id: number; id: number },
): Promise<boolean> {
  const row = await deps.db.readOne((tx) => findPending(tx, project_id, id))
  if (!row) return false
  const step = await stepOf(deps, row)
  return step !== null && deps.db.transaction((tx) => appendStep(tx, row, step))
}

function stepOf(deps: EvidenceDeps, row: EvidenceRow): Promise<Step | null> {
  switch (row.section) {
    case 'header':
      return header(deps, row)
    case 'acts':
      return acts(deps, row)
    case 'interventions':
      return interventions(deps, row)
    case 'days':
      return days(deps, row)
    case 'messages':
      return message(deps, row)
    case 'signature':
      return signature(deps, row)
    case 'done':
      return Promise.resolve(null)
  }
}

const rangeOf = ({ range_from, range_to }: EvidenceRow) => ({ from: range_from, to: range_to })

async function header(deps: EvidenceDeps, row: EvidenceRow): Promise<Step> {
  await coverRows(deps)
  return deps.db.read(async (tx) => {
    const project = await findProject(tx, row.project_id)
    const { first, last, checkpointId } = await findExcerpt(tx, row.project_id, rangeOf(row))
    const content = {
      type: 'evidence',
      version: 1,
      id: row.id,
      project: { id: project.id, name: project.name, created_at: project.created_at.toISOString() },
      from: row.range_from.toISOString(),
      to: row.range_to.toISOString(),
      message_ids: row.message_ids,
      requested_by: { id: row.requested_by, email: row.requester_email },
      requested_at: row.created_at.toISOString(),
      made_at: (await databaseTime(tx)).toISOString(),
      made_with: `Postern ${deps.version}`,
    }
    const checkpoint = checkpointId === null ? [] : [await checkpointLine(tx, checkpointId)]
    const dayCount = Math.ceil((row.range_to.getTime() - row.range_from.getTime()) / 86_400_000) + 1
    return {
      contents: [content, ...checkpoint],
      section: 'acts',
      section_after: first - 1,
      plan: {
        last_seq: last,
        checkpoint_id: checkpointId,
        expected_lines: 3 + last - first + 1 + dayCount + row.message_ids.length,
      },
    }
  })
}

/** Otherwise a checkpoint would cover the newest rows only within a minute. */
async function coverRows({ db, masterKeys, auditSigner, auditCheckpointFile, log }: EvidenceDeps) {
  if (auditSigner === 'elsewhere') return
  await runCheckpoints({ db, masterKeys, signer: auditSigner, file: auditCheckpointFile, log })
}

async function acts({ db }: EvidenceDeps, row: EvidenceRow): Promise<Step> {
  const after = row.section_after
  const contents = await db.read((tx) =>
    excerptLines(tx, { chain: row.project_id, after, upTo: row.last_seq ?? 0, limit: actsAtOnce }),
  )
  // Also if a row is missing, which verification reports.
  if (contents.length < actsAtOnce) return { contents, section: 'interventions', section_after: 0 }
  const { seq } = contents.at(-1) as { seq: number }
  return { contents, section: 'acts', section_after: seq }
}

async function interventions({ db }: EvidenceDeps, row: EvidenceRow): Promise<Step> {
  const page = { ...rangeOf(row), afterId: row.section_after, limit: interventionsAtOnce }
  const rows = await db.read((tx) => listWithin(tx, row.project_id, page))
  const contents = rows.map((one) => ({ type: 'intervention', ...interventionView(one) }))
  const last = rows.length < interventionsAtOnce ? undefined : rows.at(-1)
  return last
    ? { contents, section: 'interventions', section_after: last.id }
    : { contents, section: 'days', section_after: 0 }
}

async function days({ mailOf }: EvidenceDeps, row: EvidenceRow): Promise<Step> {
  const found = await mailOf(row.project_id).read((tx) => findDaysWithin(tx, row.project_id, rangeOf(row)))
  const contents = found.toReversed().map((day) => ({ type: 'day', ...day }))
  return { contents, section: 'messages', section_after: 0 }
}

/** One in each step: a message can have thousands of attempts. */
async function message({ mailOf }: EvidenceDeps, row: EvidenceRow): Promise<Step> {
  const id = row.message_ids[row.section_after]
  if (id === undefined) return { contents: [], section: 'signature', section_after: 0 }
  const timeline = await mailOf(row.project_id).read((tx) => messageTimeline(tx, row.project_id, id))
  // Its retention period may have ended since the request.
  const content = { type: 'message', id, ...(timeline ?? { message: null }) }
  return { contents: [content], section: 'messages', section_after: row.section_after + 1 }
}

async function signature(
  { db, masterKeys, auditSigner: signer }: EvidenceDeps,
  row: EvidenceRow,
): Promise<Step | null> {
  if (signer === 'elsewhere') return null
  const statement = {
    evidence_id: row.id,
    project_id: row.project_id,
    at: (await db.readOne(databaseTime)).toISOString(),
    lines: row.lines,
    hash: row.last_hash.toString('hex'),
  }
  const signed = await signatureOf(statement, { signer, masterKeys })
  // The line has the hash as `prev`.
  const { hash: _hash, ...shown } = statement
  return {
    contents: [{ type: 'signature', ...shown, ...signed }],
    section: 'done',
    section_after: 0,
  }
}
