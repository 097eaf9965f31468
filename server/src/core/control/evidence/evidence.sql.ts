import { type Selectable, sql } from 'kysely'
import type { OneStatement, ReadTx, Schema, Tx } from '../../../platform/db/db.ts'

export const sections = ['header', 'acts', 'interventions', 'days', 'messages', 'signature', 'done'] as const
export type Section = (typeof sections)[number]

type Stored = Selectable<Schema['control.evidence']>

export interface EvidenceRow extends Omit<Stored, 'section'> {
  section: Section
  requester_email: string | null
}

const columns = sql`evidence.*,
  (select email from control.users where id = evidence.requested_by) as requester_email`

export interface NewEvidence {
  projectId: number
  requestedBy: number
  from: Date
  to: Date
  messageIds: readonly string[]
}

export async function insert(
  tx: Tx,
  { projectId, requestedBy, from, to, messageIds }: NewEvidence,
): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into control.evidence (project_id, requested_by, range_from, range_to, message_ids)
    values (${projectId}, ${requestedBy}, ${from}, ${to}, ${messageIds}::uuid[]) returning id`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the statement returned no evidence')
  return row.id
}

export async function count(tx: ReadTx, projectId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from control.evidence where project_id = ${projectId}`.execute(tx)
  return rows[0]?.count ?? 0
}

/** Reads the whole table, which the limits keep small. */
export async function countRequestedBy(tx: ReadTx, userId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from control.evidence where requested_by = ${userId}`.execute(tx)
  return rows[0]?.count ?? 0
}

export async function find(tx: ReadTx, projectId: number, id: number): Promise<EvidenceRow | undefined> {
  const { rows } = await sql<EvidenceRow>`
    select ${columns} from control.evidence
     where project_id = ${projectId} and id = ${id}`.execute(tx)
  return rows[0]
}

export async function listByProject(
  tx: ReadTx,
  projectId: number,
  { limit, beforeId }: { limit: number; beforeId: number },
): Promise<EvidenceRow[]> {
  const { rows } = await sql<EvidenceRow>`
    select ${columns} from control.evidence
     where project_id = ${projectId} and id < ${beforeId} order by id desc limit ${limit}`.execute(tx)
  return rows
}

const isPending = sql<boolean>`section <> 'done' and problem is null`

/** The oldest first. */
export async function listPending(tx: ReadTx, limit: number): Promise<{ id: number; project_id: number }[]> {
  const { rows } = await sql<{ id: number; project_id: number }>`
    select id, project_id from control.evidence where ${isPending} order by id limit ${limit}`.execute(tx)
  return rows
}

export async function findPending(
  tx: ReadTx,
  projectId: number,
  id: number,
): Promise<EvidenceRow | undefined> {
  const { rows } = await sql<EvidenceRow>`
    select ${columns} from control.evidence
     where project_id = ${projectId} and id = ${id} and ${isPending}`.execute(tx)
  return rows[0]
}

export interface Position {
  section: Section
  section_after: number
}

export interface Written extends Position {
  lines: number
  bytes: number
  last_hash: string
  /** Null: unchanged. */
  plan: { last_seq: number; checkpoint_id: number | null; expected_lines: number } | null
}

/** Returns false if another worker has continued it in the meantime. */
export async function writeStep(tx: Tx, row: EvidenceRow, written: Written): Promise<boolean> {
  const { section, section_after, lines, bytes, last_hash, plan } = written
  const { numAffectedRows } = await sql`
    update control.evidence
       set section = ${section}, section_after = ${section_after}, lines = ${lines}, bytes = ${bytes},
           last_hash = decode(${last_hash}, 'hex'), last_seq = ${plan ? plan.last_seq : row.last_seq},
           checkpoint_id = ${plan ? plan.checkpoint_id : row.checkpoint_id},
           expected_lines = ${plan?.expected_lines ?? row.expected_lines}, updated_at = postern.now()
     where id = ${row.id} and section = ${row.section} and section_after = ${row.section_after}
       and lines = ${row.lines} and problem is null`.execute(tx)
  return numAffectedRows === 1n
}

export async function writeProblem(tx: Tx, { id }: EvidenceRow, problem: string): Promise<void> {
  await sql`
    update control.evidence set problem = ${problem}, updated_at = postern.now() where id = ${id}`.execute(tx)
}

export async function insertChunk(
  tx: Tx,
  { id, project_id }: EvidenceRow,
  { line, part, content }: { line: number; part: number; content: Buffer },
): Promise<void> {
  await sql`
    insert into control.evidence_chunks (evidence_id, line, part, project_id, content)
    values (${id}, ${line}, ${part}, ${project_id}, ${content})`.execute(tx)
}

export interface ChunkRow {
  line: number
  part: number
  content: Buffer
}

/** One at a time: each is up to 1 MiB. */
export async function findChunkAfter(
  tx: ReadTx,
  projectId: number,
  id: number,
  { line, part }: { line: number; part: number },
): Promise<ChunkRow | undefined> {
  const { rows } = await sql<ChunkRow>`
    select line, part, content from control.evidence_chunks
     where evidence_id = ${id} and project_id = ${projectId} and (line, part) > (${line}::int, ${part}::int)
     order by line, part limit 1`.execute(tx)
  return rows[0]
}

export async function deleteExpired(tx: OneStatement, limit: number): Promise<number> {
  const { rows } = await sql`
    delete from control.evidence where ctid = any(array(
      select ctid from control.evidence where expires_at <= postern.now()
       order by expires_at limit ${limit} for update skip locked))
    returning true`.execute(tx)
  return rows.length
}
