import { type OwnerNoticeDeps, sendOwnerNotices } from '../notifications/owner-notices.ts'
import { type DomainNotice, deleteLate, deleteNotice, listNotices } from './dns-notices.sql.ts'

/**
 * Notices to the owner of a verified domain for which DNS lookups fail: two warnings, and one when the domain is no longer
 * verified (check-schedule.ts).
 */
export const sendDomainNotices = (
  deps: OwnerNoticeDeps,
  atMost: number,
  signal: AbortSignal,
): Promise<void> =>
  sendOwnerNotices(
    {
      subject: 'a domain with failing DNS lookups',
      ...{ list: listNotices, delete: deleteNotice, deleteLate },
      idsOf: ({ project_id, domain_id, days }) => ({ project_id, domain_id, days }),
      mailFor(notice: DomainNotice, publicUrl) {
        const { email, is_unanswered } = notice
        return email === null || !is_unanswered ? null : { to: email, ...textOf(notice, publicUrl) }
      },
    },
    deps,
    atMost,
    signal,
  )

const lastDay = 14

function textOf(
  { project_id, domain_id, days, name, project_name, last_check_error }: DomainNotice,
  { origin }: URL,
): { subject: string; text: string } {
  const path = `${origin}/v1/projects/${project_id}/domains/${domain_id}`
  const isLost = days >= lastDay
  return {
    subject: isLost ? `${name} is no longer verified` : `DNS lookups for ${name} are failing`,
    text: [
      `DNS lookups for ${name}, a domain in your project "${project_name}", have failed for ${days} days.`,
      `Last check: ${last_check_error ?? 'lookup failed'}`,
      isLost
        ? 'The domain is no longer verified, and no mail is accepted from it.'
        : `After ${lastDay} days of failed lookups, the domain will no longer be verified, and no mail will be accepted from it.`,
      `Check the name servers of the domain, then request a check: POST ${path}/verify.`,
    ].join('\n\n'),
  }
}
