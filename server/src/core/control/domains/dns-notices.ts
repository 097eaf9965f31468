import type { Tx } from '../../../platform/db/db.ts'
import { labelOf, linkless } from '../notifications/customer-text.ts'
import type { AddressedMail, ComposeDeps, QueuedSystemMail } from '../notifications/queued-mail.ts'
import { findUnanswered } from './dns-notices.sql.ts'

const lastDay = 14

/**
 * A notice to the owner of a verified domain for which DNS lookups fail: two warnings, and one when the domain is no longer
 * verified (check-schedule.ts). The text describes the domain at the time of sending. Obsolete once the lookups succeed again.
 */
export async function composeDomainNotice(
  tx: Tx,
  { subject_id }: QueuedSystemMail,
  { publicUrl: { origin } }: ComposeDeps,
): Promise<AddressedMail | null> {
  const found = await findUnanswered(tx, subject_id)
  if (!found) return null
  const { id, days, project_id, project_name, status, last_check_error, email } = found
  const name = linkless(found.name)
  const path = `${origin}/v1/projects/${project_id}/domains/${id}`
  const isLost = status !== 'verified'
  return {
    to: email,
    subject: isLost ? `${name} is no longer verified` : `DNS lookups for ${name} are failing`,
    blocks: [
      `DNS lookups for ${name}, a domain in your ${labelOf('project', project_id, project_name)}, have failed for ${days} days.`,
      `Last check: ${linkless(last_check_error ?? 'lookup failed')}`,
      isLost
        ? 'The domain is no longer verified, and no mail is accepted from it.'
        : `After ${lastDay} days of failed lookups, the domain will no longer be verified, and no mail will be accepted from it.`,
      `Check the name servers of the domain, then request a check: POST ${path}/verify.`,
    ],
  }
}
