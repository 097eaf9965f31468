import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { plainName } from '../../shared/text.ts'
import type { Change } from '../audit/record.ts'
import {
  type Decision,
  endInForce,
  type InterventionChange,
  imposeForever,
  lockUntil,
  type Settled,
} from '../interventions/interventions.ts'
import { makeOwner, type RoleChange } from '../members/members.ts'
import { type PlanRow, planView, requireAssignablePlan } from '../plans/plans.ts'
import {
  type FieldValue,
  planReversals,
  type ReversalChange,
  type TemporaryValues,
} from '../reversals/reversals.ts'
import type { TemporaryField } from '../reversals/wire.ts'
import { requireActiveUser } from '../users/users.ts'
import { countMail, countOwned, type ProjectCounts, type QueuedMail } from './project-counts.sql.ts'
import {
  exists,
  find,
  findNames,
  insert,
  lock,
  type ProjectRow,
  setScore,
  setScoreOffset,
  update,
} from './projects.sql.ts'
import type { Project, ProjectConfig, SubscriptionStatus } from './wire.ts'

export type { ProjectCounts, ProjectRow, QueuedMail }

export const projectView = (row: ProjectRow): Static<typeof Project> => ({
  id: row.id,
  user_id: row.user_id,
  reputation_score: row.reputation_score,
  bounced: row.bounced,
  failed: row.failed,
  complained: row.complained,
  name: row.name,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  is_locked: row.is_locked,
  allow_service_mta: row.allow_service_mta,
  plan_id: row.plan_id,
  admin_plan_id: row.admin_plan_id,
  billing_subscription_id: row.billing_subscription_id,
  billing_subscription_status: row.billing_subscription_status as SubscriptionStatus | null,
  billing_product_id: row.billing_product_id,
  admin_subscription_status: row.admin_subscription_status as SubscriptionStatus | null,
  plan: planView(row.plan),
})

/** The editable fields. */
export const projectConfig = (row: ProjectRow): ProjectConfig => ({
  name: row.name,
  user_id: row.user_id,
  reputation_score: row.reputation_score,
  is_locked: row.is_locked,
  allow_service_mta: row.allow_service_mta,
  plan_id: row.plan_id,
  admin_plan_id: row.admin_plan_id,
  admin_subscription_status: row.admin_subscription_status as SubscriptionStatus | null,
  billing_subscription_id: row.billing_subscription_id,
  billing_subscription_status: row.billing_subscription_status as SubscriptionStatus | null,
  billing_product_id: row.billing_product_id,
})

/** The fields stored in the audit log: the editable fields and the score offset. */
export const projectRecord = (row: ProjectRow) => ({ ...projectConfig(row), score_offset: row.score_offset })

export const projectChange = (before: ProjectRow, after: ProjectRow): Change => ({
  resource: 'project',
  id: after.id,
  before: projectRecord(before),
  after: projectRecord(after),
})

/** Also thrown for a project that the caller cannot access. */
export const missingProject = (id: number): PosternError =>
  new PosternError('not_found', `There is no project ${id}.`)

const existing = (row: ProjectRow | undefined, id: number): ProjectRow => {
  if (!row) throw missingProject(id)
  return row
}

export const findProject = async (tx: ReadTx, id: number): Promise<ProjectRow> =>
  existing(await find(tx, id), id)
export const lockProject = async (tx: Tx, id: number): Promise<ProjectRow> => existing(await lock(tx, id), id)

/** Only checks existence, so it also works with the mail plane's role, which cannot read all columns. */
export async function requireProject(tx: ReadTx, id: number): Promise<void> {
  if (!(await exists(tx, id))) throw missingProject(id)
}

/** By project id. A deleted project has none. */
export async function projectNames(tx: ReadTx, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
  const rows = await findNames(tx, [...new Set(ids)])
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** For previews: the project's resources. */
export const projectCounts = countOwned
export const countQueuedMail = countMail

/** Reads the plan again after waiting for a lock. */
export const planInForce = async (tx: ReadTx, id: number): Promise<PlanRow> =>
  (await findProject(tx, id)).plan

export async function createProject(
  tx: Tx,
  { name, user_id, plan_id }: { name: string; user_id: number; plan_id: number },
): Promise<{ row: ProjectRow; members: RoleChange[] }> {
  await requireActiveUser(tx, user_id, 'user_id')
  await requireAssignablePlan(tx, plan_id, 'plan_id')
  const row = await insert(tx, plainName(name, 'name'), user_id, plan_id)
  return { row, members: await makeOwner(tx, row.id, user_id) }
}

/** Compares offsets, because the displayed score is clamped to 0–100 and the offset can exceed that range. */
const movesScore = (
  { computed_score, score_offset }: ProjectRow,
  { reputation_score }: Partial<ProjectConfig>,
) => reputation_score !== undefined && reputation_score - computed_score !== score_offset

export interface ProjectEdit {
  change: Partial<ProjectConfig>
  decision: Decision
  /** When a lock ends, and overrides return to their previous values. */
  expiresAt?: Date | null
}

/** Returns `before` without changing members, interventions or reversals if nothing changes. */
export async function editProject(
  tx: Tx,
  before: ProjectRow,
  { change, decision, expiresAt = null }: ProjectEdit,
): Promise<{
  row: ProjectRow
  changed: (keyof ProjectConfig)[]
  members: RoleChange[]
  interventions: InterventionChange[]
  reversals: ReversalChange[]
}> {
  const current = projectConfig(before)
  const wanted = { ...current, ...change }
  if (change.name !== undefined) wanted.name = plainName(change.name, 'name')
  const names = Object.keys(current) as (keyof ProjectConfig)[]
  const fields = names.filter((field) => {
    if (field === 'is_locked') return false
    return field === 'reputation_score' ? movesScore(before, change) : wanted[field] !== current[field]
  })
  const has = (field: keyof ProjectConfig) => fields.includes(field)
  if (has('plan_id')) await requireAssignablePlan(tx, wanted.plan_id, 'plan_id')
  if (has('admin_plan_id') && wanted.admin_plan_id !== null) {
    await requireAssignablePlan(tx, wanted.admin_plan_id, 'admin_plan_id')
  }
  if (has('user_id')) await requireActiveUser(tx, wanted.user_id, 'user_id')
  const lock = await changeLock(tx, before, change.is_locked, { decision, expiresAt })
  if (has('reputation_score')) await setScore(tx, before.id, wanted.reputation_score)
  const row = await writtenRow(tx, before, lock.project, fields.length > 0 ? wanted : undefined)
  const reversals = await planReversals(tx, before.id, {
    before: temporaryValues(before),
    after: temporaryValues(row),
    named: Object.keys(change),
    expiresAt,
  })
  const isRescheduled = (field: string) =>
    reversals.some(({ before, after }) => (after ?? before)?.field === field)
  return {
    row,
    changed: names.filter((field) =>
      field === 'is_locked' ? lock.changes.length > 0 : has(field) || isRescheduled(field),
    ),
    members: has('user_id') ? await makeOwner(tx, before.id, wanted.user_id) : [],
    interventions: lock.changes,
    reversals,
  }
}

/** Writes the configuration, if it changes, and returns the project with its lock. */
function writtenRow(
  tx: Tx,
  before: ProjectRow,
  locked: ProjectRow,
  config: ProjectConfig | undefined,
): ProjectRow | Promise<ProjectRow> {
  if (config) return update(tx, before, config)
  return locked === before ? before : findProject(tx, before.id)
}

/** The fields that can be overridden for a limited time, in the form in which reversals store them. */
export const temporaryValues = (row: ProjectRow): TemporaryValues => ({
  reputation_score: row.score_offset,
  allow_service_mta: row.allow_service_mta,
  admin_plan_id: row.admin_plan_id,
  admin_subscription_status: row.admin_subscription_status,
})

/** Restores a value that the field had before. It is not checked again: the plan may be inactive by now. */
export async function restoreField(
  tx: Tx,
  before: ProjectRow,
  field: TemporaryField,
  value: FieldValue,
): Promise<ProjectRow> {
  const config = projectConfig(before)
  if (field === 'reputation_score') await setScoreOffset(tx, before.id, Number(value))
  return update(tx, before, field === 'reputation_score' ? config : { ...config, [field]: value })
}

/** Locks and unlocks are interventions. Unlocking ends all locks, including those that would expire. */
async function changeLock(
  tx: Tx,
  before: ProjectRow,
  isLocked: boolean | undefined,
  { decision, expiresAt }: { decision: Decision; expiresAt: Date | null },
): Promise<Settled<ProjectRow>> {
  if (isLocked === undefined || (!isLocked && !before.is_locked)) return { project: before, changes: [] }
  if (!isLocked) return endInForce(tx, before, 'lock')
  if (expiresAt === null) return imposeForever(tx, before, 'lock', decision)
  return lockUntil(tx, before, expiresAt, decision)
}
