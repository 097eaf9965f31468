/**
 * Policies: rules for the sending of all projects. This file has their configuration. Every change holds the lock on the
 * table (`lockPolicy`, `createPolicy`, `turnOffPolicies`), so that the checks of names and of the number hold.
 */
import type { Static } from 'typebox'
import type { ReadTx, Tx } from '../../../platform/db/db.ts'
import { PosternError } from '../../../platform/errors.ts'
import { oneLine, plainName } from '../../shared/text.ts'
import type { Change } from '../audit/record.ts'
import {
  count,
  find,
  findByName,
  insert,
  list,
  listAll,
  listMissingPlans,
  lockTable,
  type PolicyColumns,
  type PolicyRow,
  remove,
  update,
  updateMode,
} from './policies.sql.ts'
import { type Policy, type PolicyConfig, scoreWindowMinutes } from './wire.ts'

export type { PolicyRow }

export const maxPolicies = 100

export const policyView = (row: PolicyRow): Static<typeof Policy> => ({
  id: row.id,
  ...policyConfig(row),
  tripped_at: row.tripped_at?.toISOString() ?? null,
  version: row.version,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

/** The editable fields. */
export const policyConfig = (row: PolicyRow): PolicyConfig => ({
  name: row.name,
  mode: row.mode,
  applies_to: {
    plan_ids: row.plan_ids,
    younger_than_days: row.younger_than_days,
    except_project_ids: row.except_project_ids,
  },
  signal: row.signal,
  window_minutes: row.window_minutes,
  threshold: row.threshold,
  minimum_volume: row.minimum_volume,
  intervention: {
    kind: row.kind,
    pace_per_hour: row.pace_per_hour,
    duration_minutes: row.duration_minutes,
    public_note: row.public_note,
  },
  cooldown_minutes: row.cooldown_minutes,
})

/** The fields in the audit log. */
const record = (row: PolicyRow) => ({
  ...policyConfig(row),
  tripped_at: row.tripped_at?.toISOString() ?? null,
})

export const policyChange = (id: number, before: PolicyRow | null, after: PolicyRow | null): Change => ({
  resource: 'policy',
  id,
  before: before && record(before),
  after: after && record(after),
})

export const findPolicyIfExists = find

export const findPolicy = async (tx: ReadTx, id: number): Promise<PolicyRow> =>
  (await find(tx, id)) ?? missing(id)

export async function lockPolicy(tx: Tx, id: number): Promise<PolicyRow> {
  await lockTable(tx)
  return findPolicy(tx, id)
}

function missing(id: number): never {
  throw new PosternError('not_found', `There is no policy ${id}.`)
}

export const listPolicies = list
export const listAllPolicies = listAll

export async function createPolicy(tx: Tx, config: PolicyConfig): Promise<PolicyRow> {
  await lockTable(tx)
  const wanted = await checked(tx, config)
  if ((await count(tx)) >= maxPolicies) {
    throw new PosternError(
      'limit_exceeded',
      `There are already ${maxPolicies} policies. Delete one of them first.`,
    )
  }
  return insert(tx, columnsOf(wanted, null))
}

/**
 * Returns `before` if nothing changes. The caller has locked the policy. An edit with `mode` clears `tripped_at`, even if the
 * mode stays the same.
 */
export async function editPolicy(
  tx: Tx,
  before: PolicyRow,
  change: Partial<PolicyConfig>,
): Promise<PolicyRow> {
  const current = policyConfig(before)
  const wanted = await checked(tx, { ...current, ...change }, before.id)
  const trippedAt = change.mode === undefined ? before.tripped_at : null
  const isSame = trippedAt === before.tripped_at && JSON.stringify(wanted) === JSON.stringify(current)
  return isSame ? before : update(tx, before.id, columnsOf(wanted, trippedAt))
}

/** The caller has locked the policy. */
export const deletePolicy = (tx: Tx, { id }: PolicyRow): Promise<void> => remove(tx, id)

/** Returns the policies that were not off, before and after. */
export async function turnOffPolicies(tx: Tx): Promise<{ before: PolicyRow; after: PolicyRow }[]> {
  await lockTable(tx)
  const changes: { before: PolicyRow; after: PolicyRow }[] = []
  for (const before of await listAll(tx)) {
    if (before.mode === 'off') continue
    changes.push({ before, after: await updateMode(tx, before.id, { mode: 'off', tripped_at: null }) })
  }
  return changes
}

const columnsOf = (
  { applies_to, intervention, ...config }: PolicyConfig,
  tripped_at: Date | null,
): PolicyColumns => ({ ...config, ...applies_to, ...intervention, tripped_at })

/** The stored form of a configuration. `id`: the policy that is edited. */
async function checked(tx: ReadTx, config: PolicyConfig, id?: number): Promise<PolicyConfig> {
  checkThreshold(config)
  const wanted = {
    ...config,
    name: plainName(config.name, 'name'),
    applies_to: await checkedScope(tx, config.applies_to),
    intervention: checkedIntervention(config.intervention),
  }
  const other = await findByName(tx, wanted.name)
  if (other && other.id !== id) {
    throw new PosternError(
      'already_exists',
      `There is already a policy with this name: policy ${other.id}. Choose another name.`,
    )
  }
  return wanted
}

function checkThreshold({ signal, threshold, window_minutes }: PolicyConfig): void {
  if (signal === 'score') {
    if (window_minutes !== scoreWindowMinutes)
      throw refused(
        `"window_minutes" must be ${scoreWindowMinutes} for "score", because the score is computed from seven days.`,
      )
    if (threshold > 100) throw refused('"threshold" must be at most 100 for "score".')
    return
  }
  if (threshold === 0) throw refused(`"threshold" must be greater than 0 for "${signal}".`)
  if (signal !== 'volume_spike' && threshold > 100)
    throw refused(`"threshold" must be at most 100 for "${signal}", because it is in percent.`)
}

async function checkedScope(
  tx: ReadTx,
  { plan_ids, younger_than_days, except_project_ids }: PolicyConfig['applies_to'],
): Promise<PolicyConfig['applies_to']> {
  const plans = plan_ids && inOrder(plan_ids)
  const [missingPlan] = plans ? await listMissingPlans(tx, plans) : []
  if (missingPlan !== undefined)
    throw refused(`"applies_to.plan_ids": plan ${missingPlan} does not exist. Remove it from the list.`)
  return { plan_ids: plans, younger_than_days, except_project_ids: inOrder(except_project_ids) }
}

function checkedIntervention({
  kind,
  pace_per_hour,
  duration_minutes,
  public_note,
}: PolicyConfig['intervention']): PolicyConfig['intervention'] {
  if (kind === 'pace' && pace_per_hour === null)
    throw refused('"intervention.pace_per_hour" is required for a pace.')
  if (kind !== 'pace' && pace_per_hour !== null)
    throw refused(`"intervention.pace_per_hour" applies only to a pace. For "${kind}", send null.`)
  const note = public_note === null ? null : oneLine(public_note, 'intervention.public_note', 500)
  return { kind, pace_per_hour, duration_minutes, public_note: note }
}

/** Sorted, without duplicates. */
const inOrder = (ids: readonly number[]): number[] => [...new Set(ids)].sort((one, other) => one - other)

const refused = (message: string) => new PosternError('validation_failed', message)
