/**
 * Interventions: warnings, paces, holds and locks of a project. An intervention is in force until it is ended, by a person
 * or by a worker after its expiry; ending one is always a write, so the audit log shows it.
 *
 * `settle` is the only writer of `projects.is_locked` and of the restriction that workers read. It derives both from the
 * interventions in force, in the transaction that starts or ends one. Every caller holds the lock on the project.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Static } from 'typebox'
import { databaseTime } from '../../../platform/db/clock.ts'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { publishToMail } from '../../outbox/outbox.ts'
import { oneLine } from '../../shared/text.ts'
import { timestampOf } from '../../shared/timestamp.ts'
import type { Change } from '../audit/record.ts'
import { announceEnd, announceStart } from './announcements.ts'
import {
  deleteRestriction,
  end,
  find,
  type InterventionRow,
  insert,
  listByProject,
  listInForce,
  listWithin,
  type NewIntervention,
  update,
  writeLocked,
  writeRestriction,
  writeRestrictionEnd,
} from './interventions.sql.ts'
import type { Intervention, InterventionConfig, InterventionEnd, InterventionKind } from './wire.ts'

export type { InterventionRow }
export { listInForce, listWithin }

/** The part of a project that interventions change. */
export interface Lockable {
  id: number
  is_locked: boolean
  version: number
}

/** What an operation did. `project` is the project afterwards. */
export interface Settled<Project extends Lockable = Lockable> {
  project: Project
  /** The interventions that were started, edited or ended, with their state before. */
  changes: InterventionChange[]
}

export interface InterventionChange {
  before: InterventionRow | null
  after: InterventionRow
}

/** A project cannot have more interventions in force than this. */
export const maxInForce = 20

export const interventionView = (row: InterventionRow): Static<typeof Intervention> => ({
  id: row.id,
  project_id: row.project_id,
  kind: row.kind,
  source: row.source,
  policy_id: row.policy_id,
  started_by: row.started_by === null ? null : { id: row.started_by, email: row.starter_email ?? '' },
  reason: row.reason,
  public_note: row.public_note,
  pace_per_hour: row.pace_per_hour,
  evidence: row.evidence,
  expires_at: row.expires_at?.toISOString() ?? null,
  drains_before: row.drains_before?.toISOString() ?? null,
  ended_at: row.ended_at?.toISOString() ?? null,
  ended_by: row.ended_by,
  appeal: row.appeal && { ...row.appeal, created_at: new Date(row.appeal.created_at).toISOString() },
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

/** The fields in the audit log. The reason is in the audit row itself. */
const interventionRecord = (row: InterventionRow) => {
  const { kind, public_note, pace_per_hour, expires_at, ended_by, ...view } = interventionView(row)
  const policy = { policy_id: view.policy_id, evidence: view.evidence }
  return {
    ...{ kind, public_note, pace_per_hour, expires_at, ended_by },
    ...(row.source === 'policy' && policy),
  }
}

export const interventionChange = ({ before, after }: InterventionChange): Change => ({
  resource: 'intervention',
  id: after.id,
  before: before && interventionRecord(before),
  after: interventionRecord(after),
})

export async function findIntervention(tx: ReadTx, projectId: number, id: number): Promise<InterventionRow> {
  const row = await find(tx, projectId, id)
  if (!row) throw new PosternError('not_found', `There is no intervention ${id} in project ${projectId}.`)
  return row
}

export const listInterventions = listByProject

/** Who starts an intervention, and why. */
export interface Decision {
  /** Null for a command on the server. */
  actorId: number | null
  /** Null only in a dry run. */
  reason: string | null
}

export interface WantedIntervention extends Partial<InterventionConfig>, Decision {
  kind: InterventionKind
  /** Only for a gradual release. */
  drains_before?: Date | null
  /** The policy that starts it, with the figures. Null: an administrator or a command. */
  policy?: NewIntervention['policy']
}

export async function startIntervention<Project extends Lockable>(
  tx: Tx,
  project: Project,
  wanted: WantedIntervention,
): Promise<Settled<Project> & { row: InterventionRow }> {
  if ((await listInForce(tx, project.id)).length >= maxInForce) {
    throw new PosternError(
      'limit_exceeded',
      `Project ${project.id} already has ${maxInForce} interventions in force. End one of them first.`,
    )
  }
  return start(tx, project, wanted)
}

async function start<Project extends Lockable>(
  tx: Tx,
  project: Project,
  { kind, actorId, reason, drains_before = null, policy = null, ...config }: WantedIntervention,
): Promise<Settled<Project> & { row: InterventionRow }> {
  const row = await insert(tx, project.id, {
    ...{ kind, started_by: actorId, reason: reason ?? '', drains_before, policy },
    ...(await checked(tx, kind, config)),
  })
  await announceStart(tx, row)
  return { row, project: await settle(tx, project), changes: [{ before: null, after: row }] }
}

/** Returns `before` if nothing changes. */
export async function editIntervention<Project extends Lockable>(
  tx: Tx,
  project: Project,
  before: InterventionRow,
  config: InterventionConfig,
): Promise<Settled<Project> & { row: InterventionRow }> {
  refuseEnded(before)
  const { pace_per_hour, public_note, expires_at } = before
  const wanted = await checked(tx, before.kind, config, before)
  if (isDeepStrictEqual(wanted, { pace_per_hour, public_note, expires_at })) {
    return { row: before, project, changes: [] }
  }
  const row = await update(tx, before, wanted)
  return { row, project: await settle(tx, project), changes: [{ before, after: row }] }
}

export async function endIntervention<Project extends Lockable>(
  tx: Tx,
  project: Project,
  before: InterventionRow,
  endedBy: InterventionEnd,
): Promise<Settled<Project> & { row: InterventionRow }> {
  refuseEnded(before)
  const { changes, ...settled } = await endAll(tx, project, [before], endedBy)
  const [change] = changes
  if (!change) throw new Error(`intervention ${before.id} was not ended`)
  return { ...settled, changes, row: change.after }
}

/** Ends every intervention of a kind. */
export async function endInForce<Project extends Lockable>(
  tx: Tx,
  project: Project,
  kind: InterventionKind,
): Promise<Settled<Project>> {
  const inForce = await listInForce(tx, project.id)
  return endAll(
    tx,
    project,
    inForce.filter((row) => row.kind === kind),
    'administrator',
  )
}

/**
 * Starts an administrator's intervention without expiry, unless one of that kind is already in force. An intervention that
 * expires does not count: afterwards, the project must stay as the administrator wants it. There is at most one of each
 * kind, so the limit does not apply: it must not keep an administrator from stopping a project.
 */
export async function imposeForever<Project extends Lockable>(
  tx: Tx,
  project: Project,
  kind: 'hold' | 'lock',
  decision: Decision,
): Promise<Settled<Project>> {
  const isImposed = (await ownInForce(tx, project.id, kind)).some(({ expires_at }) => expires_at === null)
  return isImposed ? { project, changes: [] } : start(tx, project, { kind, ...decision })
}

/** Locks the project until a time, unless an administrator's lock until that time is already in force. */
export async function lockUntil<Project extends Lockable>(
  tx: Tx,
  project: Project,
  until: Date,
  decision: Decision,
): Promise<Settled<Project>> {
  const locks = await ownInForce(tx, project.id, 'lock')
  if (locks.some(({ expires_at }) => expires_at?.getTime() === until.getTime()))
    return { project, changes: [] }
  return startIntervention(tx, project, { kind: 'lock', ...decision, expires_at: until.toISOString() })
}

/** Interventions of administrators, not of policies. */
const ownInForce = async (
  tx: ReadTx,
  projectId: number,
  wanted: InterventionKind,
): Promise<InterventionRow[]> =>
  (await listInForce(tx, projectId)).filter(
    ({ kind, source }) => kind === wanted && source === 'administrator',
  )

async function endAll<Project extends Lockable>(
  tx: Tx,
  project: Project,
  rows: readonly InterventionRow[],
  endedBy: InterventionEnd,
): Promise<Settled<Project>> {
  const ended = await end(
    tx,
    project.id,
    rows.map(({ id }) => id),
    endedBy,
  )
  for (const row of ended) {
    await announceEnd(tx, row)
    if (row.kind !== 'warn' && row.ended_at) await writeRestrictionEnd(tx, project.id, row.ended_at)
  }
  const changes = ended.map((after) => ({ before: rows.find(({ id }) => id === after.id) ?? null, after }))
  return { project: await settle(tx, project), changes }
}

/** Brings the project and its restriction in line with the interventions in force. */
async function settle<Project extends Lockable>(tx: Tx, project: Project): Promise<Project> {
  const inForce = await listInForce(tx, project.id)
  const ofKind = (kind: InterventionKind) => inForce.filter((row) => row.kind === kind)
  const [holds, paces] = [ofKind('hold'), ofKind('pace')]
  const [strictest] = holds.length > 0 ? holds : paces
  if (strictest) {
    await writeRestriction(tx, project.id, {
      kind: holds.length > 0 ? 'hold' : 'pace',
      pace_per_hour:
        holds.length > 0
          ? null
          : Math.min(...paces.map((row) => row.pace_per_hour ?? Number.POSITIVE_INFINITY)),
      since: strictest.created_at,
    })
  } else await deleteRestriction(tx, project.id)
  // Mail may be claimable again. An unnecessary hint costs one poll.
  tx.hint('mail')
  const isLocked = ofKind('lock').length > 0
  if (isLocked === project.is_locked) return project
  await writeLocked(tx, project, isLocked)
  const type = isLocked ? 'project.locked' : 'project.unlocked'
  await publishToMail(tx, project.id, 'event', { type, data: { id: project.id } })
  return { ...project, is_locked: isLocked, version: project.version + 1 }
}

const maxDays = 366

/** The stored form of a configuration. An unchanged expiry is not checked again, because it may be past by now. */
async function checked(
  tx: ReadTx,
  kind: InterventionKind,
  { pace_per_hour = null, public_note = null, expires_at = null }: Partial<InterventionConfig>,
  before?: InterventionRow,
): Promise<Pick<NewIntervention, 'pace_per_hour' | 'public_note' | 'expires_at'>> {
  if (kind === 'pace' && pace_per_hour === null) throw refused('"pace_per_hour" is required for a pace.')
  if (kind !== 'pace' && pace_per_hour !== null)
    throw refused(`"pace_per_hour" applies only to a pace. For "${kind}", omit it or send null.`)
  const note = public_note === null ? null : oneLine(public_note, 'public_note', 500)
  return { pace_per_hour, public_note: note, expires_at: await expiryOf(tx, expires_at, before?.expires_at) }
}

export async function expiryOf(
  tx: ReadTx,
  text: string | null,
  unchanged: Date | null = null,
): Promise<Date | null> {
  if (text === null) return null
  const at = timestampOf(text, 'expires_at')
  if (at.getTime() === unchanged?.getTime()) return at
  const now = (await databaseTime(tx)).getTime()
  if (at.getTime() <= now) throw refused('"expires_at" is in the past.')
  if (at.getTime() > now + maxDays * 86_400_000)
    throw refused(
      `"expires_at" is more than ${maxDays} days ahead. Choose an earlier time, or null for no expiry.`,
    )
  return at
}

const refused = (message: string) => new PosternError('validation_failed', message)

function refuseEnded({ id, ended_at, ended_by }: InterventionRow): void {
  if (ended_at === null) return
  throw new PosternError(
    'already_ended',
    `Intervention ${id} ended at ${ended_at.toISOString()} (${ended_by}) and can no longer be changed.`,
  )
}
