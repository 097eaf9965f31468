import type { BulkAction } from '../../../api/operations.gen.ts'
import { counted, number } from '../../../components/numbers.ts'
import type { Tone } from '../../../components/tone.ts'
import { type Kind, kinds } from '../../../resources/interventions/kinds.ts'

/** "Lock 3 projects". */
export function titleOf({ operation, body, matched }: BulkAction): string {
  const projects = counted(matched, 'project')
  switch (operation) {
    case 'queue.hold':
      return `Hold the mail of ${projects}`
    case 'queue.release':
      return `Release the mail of ${projects}`
    case 'interventions.create':
      return body['kind'] === 'lock'
        ? `Lock ${projects}`
        : `Start a ${kinds[body['kind'] as Kind].noun} for ${projects}`
    case 'projects.edit':
      return editOf(
        Object.keys(body).filter((field) => field !== 'expires_at'),
        body,
        projects,
      )
  }
}

function editOf(fields: string[], body: BulkAction['body'], projects: string): string {
  const [only] = fields
  if (fields.length > 1) return `Edit ${projects}`
  if (only === 'is_locked') return `${body['is_locked'] ? 'Lock' : 'Unlock'} ${projects}`
  if (only === 'plan_id') return `Change the plan of ${projects}`
  if (only === 'admin_plan_id') return `Change the plan override of ${projects}`
  return `Edit ${projects}`
}

export const tones: Record<BulkAction['status'], Tone> = {
  running: 'calm',
  stopped: 'warn',
  finished: 'good',
}

export const doneOf = ({ changed, unchanged, refused }: BulkAction): number => changed + unchanged + refused

/** "30 of 100". */
export const progressOf = (bulk: BulkAction): string => `${number(doneOf(bulk))} of ${number(bulk.matched)}`

export const stoppedText: Record<NonNullable<BulkAction['stopped_because']>, string> = {
  administrator: 'An administrator stopped it. The changes that were made stay.',
  rights:
    'It stopped because the administrator who started it may no longer perform the operation. The changes that were made stay.',
}
