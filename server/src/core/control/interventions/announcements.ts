import type { Tx } from '../../../platform/db/db.ts'
import { publishToMail } from '../../outbox/outbox.ts'
import type { InterventionRow } from './interventions.sql.ts'
import { insertMail } from './mails.sql.ts'

/** Per project and UTC day, so that an intervention that starts and ends repeatedly does not flood the owner. */
const maxMailsPerDay = 20

/** Publishes an event for the project's endpoints, and adds a notice to be mailed to its owner. */
export const announceStart = (tx: Tx, row: InterventionRow): Promise<void> =>
  announce(tx, 'project.intervened', row)

export const announceEnd = (tx: Tx, row: InterventionRow): Promise<void> =>
  announce(tx, 'project.reinstated', row)

async function announce(
  tx: Tx,
  type: 'project.intervened' | 'project.reinstated',
  { id, project_id, kind, public_note, pace_per_hour, expires_at }: InterventionRow,
): Promise<void> {
  const data = { intervention_id: id, kind, public_note, pace_per_hour, expires_at }
  await publishToMail(tx, project_id, 'event', { type, data })
  await insertMail(tx, { id, project_id }, maxMailsPerDay)
}
