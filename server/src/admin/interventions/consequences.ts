import type { QueueCounts } from '../../core/control/holds/project-holds.ts'
import {
  type InterventionChange,
  type InterventionRow,
  interventionChange,
  listInForce,
} from '../../core/control/interventions/interventions.ts'
import { type ProjectRow, projectChange } from '../../core/control/projects/projects.ts'
import { countText } from '../../core/shared/counts.ts'
import type { ReadTx } from '../../platform/db/db.ts'
import { type Audited, unchanged } from '../operation.ts'

/** What an intervention changes, for the audit log and as sentences for the preview. */
export function auditOf(
  before: ProjectRow,
  after: ProjectRow,
  interventions: readonly InterventionChange[],
): Audited | typeof unchanged {
  const [change, ...related] = [
    ...interventions.map(interventionChange),
    ...(before.is_locked === after.is_locked ? [] : [projectChange(before, after)]),
  ]
  return change ? { projectId: before.id, change, related } : unchanged
}

const expiryText = (at: Date | null): string =>
  at === null ? 'until an administrator ends it' : `until ${at.toISOString()}`

/** `row` is the intervention afterwards. `mail` is undefined if the mail database was unavailable. */
export async function effectsOf(
  tx: ReadTx,
  row: InterventionRow,
  mail: QueueCounts | undefined,
): Promise<string[]> {
  const waiting = `Queued messages: ${countText(mail?.waiting)}.`
  if (row.ended_at !== null) {
    const left = await listInForce(tx, row.project_id)
    const stays = left.some(({ kind }) => kind === 'lock' || kind === 'hold' || kind === 'pace')
    return [
      stays
        ? `Other interventions stay in force: ${left.map(({ kind }) => kind).join(', ')}.`
        : `No other intervention restricts the project. ${waiting}`,
    ]
  }
  const effects: Record<InterventionRow['kind'], string> = {
    warn: `The project is warned ${expiryText(row.expires_at)}. Its mail is not affected.`,
    pace: `At most ${row.pace_per_hour} recipients per hour are handed over ${expiryText(row.expires_at)}. New mail is accepted. ${waiting}`,
    hold: `No mail is handed over ${expiryText(row.expires_at)}. New mail is accepted. ${waiting}`,
    lock: `No mail is accepted or handed over ${expiryText(row.expires_at)}. ${waiting}`,
  }
  return [effects[row.kind]]
}

const daysUntilFailure = 7

export async function warningsOf(
  tx: ReadTx,
  row: InterventionRow,
  mail: QueueCounts | undefined,
): Promise<string[]> {
  if (row.ended_at !== null) return []
  const others = (await listInForce(tx, row.project_id)).filter(({ id }) => id !== row.id)
  const stricter = others.find(({ kind }) => strictness[kind] > strictness[row.kind])
  return [
    ...(stricter ? [`A stricter intervention is also in force: ${stricter.kind} (${stricter.id}).`] : []),
    ...(row.kind === 'pace' ? paceWarnings(row.pace_per_hour ?? 1, mail) : []),
    ...((row.kind === 'hold' || row.kind === 'lock') && (mail?.waiting ?? 0) > 0
      ? [`Queued messages that are still held after ${daysUntilFailure} days fail.`]
      : []),
    ...(row.kind !== 'warn' && mail !== undefined && mail.leaving > 0
      ? [`Messages being sent now that cannot be stopped: ${countText(mail.leaving)}.`]
      : []),
  ]
}

const strictness: Record<InterventionRow['kind'], number> = { warn: 0, pace: 1, hold: 2, lock: 3 }

function paceWarnings(perHour: number, mail: QueueCounts | undefined): string[] {
  if (mail === undefined) return []
  const hours = mail.waiting / perHour
  if (hours <= daysUntilFailure * 24) return []
  return [
    `${countText(mail.waiting)} queued recipients at ${perHour} per hour take ${Math.ceil(hours / 24)} days. Recipients that wait longer than ${daysUntilFailure} days fail.`,
  ]
}
