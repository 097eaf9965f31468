import type { Static } from 'typebox'
import type { QueueCounts } from '../../core/control/holds/project-holds.ts'
import {
  type InterventionRow,
  interventionChange,
  interventionView,
  listInForce,
  type Settled,
} from '../../core/control/interventions/interventions.ts'
import type { Intervention } from '../../core/control/interventions/wire.ts'
import { type ProjectRow, projectChange } from '../../core/control/projects/projects.ts'
import { countCap, counted, countText } from '../../core/shared/counts.ts'
import type { ReadTx } from '../../platform/db/db.ts'
import { type MutationResult, unchanged } from '../operation.ts'

/** The result of every operation on an intervention. `mail` is undefined if the mail database was unavailable. */
export function resultOf(
  tx: ReadTx,
  before: ProjectRow,
  { row, project: after, changes }: Settled<ProjectRow> & { row: InterventionRow },
  mail: QueueCounts | undefined,
): MutationResult<Static<typeof Intervention>> {
  const [change, ...related] = [
    ...changes.map(interventionChange),
    ...(before.is_locked === after.is_locked ? [] : [projectChange(before, after)]),
  ]
  return {
    audit: change ? { projectId: before.id, change, related } : unchanged,
    effects: () => effectsOf(tx, row, mail),
    warnings: () => warningsOf(tx, row, mail),
    answer: interventionView(row),
    version: row.version,
  }
}

const expiryText = ({ expires_at, drains_before }: InterventionRow): string => {
  if (expires_at !== null) return `until ${expires_at.toISOString()}`
  return drains_before === null ? 'until an administrator ends it' : 'until the gradual release is complete'
}

/** `row` is the intervention afterwards. */
async function effectsOf(tx: ReadTx, row: InterventionRow, mail: QueueCounts | undefined): Promise<string[]> {
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
    warn: `A warning is in force ${expiryText(row)}. Sending is not restricted.`,
    pace: `Sending is limited to ${counted(row.pace_per_hour ?? 1, 'recipient')} per hour ${expiryText(row)}. New mail is accepted. ${waiting}`,
    hold: `No mail is handed over ${expiryText(row)}. New mail is accepted. ${waiting}`,
    lock: `No mail is accepted or handed over ${expiryText(row)}. ${waiting}`,
  }
  return [effects[row.kind]]
}

const daysUntilFailure = 7

async function warningsOf(
  tx: ReadTx,
  row: InterventionRow,
  mail: QueueCounts | undefined,
): Promise<string[]> {
  if (row.ended_at !== null) return []
  const others = (await listInForce(tx, row.project_id)).filter(({ id }) => id !== row.id)
  return [
    ...others.filter((other) => outlasts(other, row)).map(outlastingText),
    ...(row.kind === 'pace' ? paceWarnings(row.pace_per_hour ?? 1, mail) : []),
    ...((row.kind === 'hold' || row.kind === 'lock') && (mail?.waiting ?? 0) > 0
      ? [`Queued messages that are still held after ${daysUntilFailure} days fail.`]
      : []),
    ...(row.kind !== 'warn' && mail !== undefined && mail.leaving > 0
      ? [`Messages being sent now that cannot be stopped: ${countText(mail.leaving)}.`]
      : []),
  ]
}

/** Whether another intervention is stricter, or is equally strict and ends later. */
function outlasts(other: InterventionRow, row: InterventionRow): boolean {
  if (row.kind === 'warn' || other.kind === 'warn') return false
  if (other.kind !== row.kind) return strictness[other.kind] > strictness[row.kind]
  if ((other.pace_per_hour ?? 0) !== (row.pace_per_hour ?? 0))
    return (other.pace_per_hour ?? 0) < (row.pace_per_hour ?? 0)
  if (row.expires_at === null) return false
  return other.expires_at === null || other.expires_at > row.expires_at
}

const outlastingText = (row: InterventionRow): string =>
  `Intervention ${row.id} is also in force ${expiryText(row)}: ${row.kind}${row.pace_per_hour === null ? '' : ` of ${row.pace_per_hour} per hour`}.`

const strictness: Record<InterventionRow['kind'], number> = { warn: 0, pace: 1, hold: 2, lock: 3 }

function paceWarnings(perHour: number, mail: QueueCounts | undefined): string[] {
  if (mail === undefined) return []
  const sendable = perHour * daysUntilFailure * 24
  const what = `Recipients that wait longer than ${daysUntilFailure} days fail.`
  if (mail.waiting > countCap) {
    return [
      `${capital(countText(mail.waiting))} recipients are queued. At ${perHour} per hour, ${sendable} are handed over in ${daysUntilFailure} days. ${what}`,
    ]
  }
  if (mail.waiting <= sendable) return []
  const days = Math.ceil(mail.waiting / perHour / 24)
  return [`${mail.waiting} queued recipients at ${perHour} per hour take ${days} days. ${what}`]
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
