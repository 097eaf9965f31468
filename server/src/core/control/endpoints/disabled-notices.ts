import type { Tx } from '../../../platform/db/db.ts'
import { labelOf, linkless } from '../notifications/customer-text.ts'
import type { AddressedMail, ComposeDeps, QueuedSystemMail } from '../notifications/queued-mail.ts'
import { findDisabled } from './disabled-notices.sql.ts'

/** The notice to the owner of a project with a disabled endpoint (health.ts). Obsolete once the endpoint is enabled again. */
export async function composeDisabledNotice(
  tx: Tx,
  { subject_id }: QueuedSystemMail,
  { publicUrl: { origin } }: ComposeDeps,
): Promise<AddressedMail | null> {
  const found = await findDisabled(tx, subject_id)
  if (!found) return null
  const { id, name, project_id, project_name, disabled_reason, email } = found
  const path = `${origin}/v1/projects/${project_id}/endpoints/${id}`
  const endpoint = labelOf('endpoint', id, name)
  return {
    to: email,
    subject: `${endpoint.replace('endpoint', 'Endpoint')} was disabled`,
    blocks: [
      `The ${endpoint} in your ${labelOf('project', project_id, project_name)} was disabled and no longer receives events.`,
      `Reason: ${linkless(disabled_reason)}`,
      `Its responses are listed at ${path}/attempts.`,
      `When it works again, enable it: PATCH ${path} with "is_active": true. Then replay the events that it missed: POST ${path}/replay.`,
    ],
  }
}
