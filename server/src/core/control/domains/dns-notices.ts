import { type OwnerNoticeDeps, sendOwnerNotices } from '../notifications/owner-notices.ts'
import { type DomainNotice, deleteLate, deleteNotice, listNotices } from './dns-notices.sql.ts'

/**
 * Mail to the owner of a project with a verified domain whose DNS gives no answer: two warnings, and one when the domain is
 * no longer verified (check-schedule.ts).
 */
export const sendDomainNotices = (
  deps: OwnerNoticeDeps,
  atMost: number,
  signal: AbortSignal,
): Promise<void> =>
  sendOwnerNotices(
    {
      subject: 'a domain without DNS answers',
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
    subject: isLost ? `${name} is no longer verified` : `DNS gives no answer for ${name}`,
    text: [
      `DNS has given no answer for the records of ${name} for ${days} days. It is a domain of your project "${project_name}".`,
      `Last check: ${last_check_error ?? 'no answer'}`,
      isLost
        ? 'The domain is no longer verified, and no mail is accepted from it.'
        : `After ${lastDay} days without an answer the domain is no longer verified, and no mail is accepted from it.`,
      `Check the name servers of the domain, then request a check: POST ${path}/verify.`,
    ].join('\n\n'),
  }
}
