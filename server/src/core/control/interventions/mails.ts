import { counted } from '../../shared/counts.ts'
import { type OwnerNoticeDeps, sendOwnerNotices } from '../notifications/owner-notices.ts'
import { deleteLate, deleteMail, type InterventionMail, listMails } from './mails.sql.ts'
import type { InterventionKind } from './wire.ts'

/**
 * Notices to the owner of a project about an intervention that started or ended. The text describes the intervention at the
 * time of sending: if it ended before its start was mailed, one message says both. The reason is never mailed.
 */
export const sendInterventionMails = (
  deps: OwnerNoticeDeps,
  atMost: number,
  signal: AbortSignal,
): Promise<void> =>
  sendOwnerNotices(
    {
      subject: 'a project with an intervention',
      ...{ list: listMails, delete: deleteMail, deleteLate },
      idsOf: ({ project_id, intervention_id }) => ({ project_id, intervention_id }),
      mailFor(notice: InterventionMail, { origin }) {
        const { email, project_id, ended_at } = notice
        if (email === null) return null
        const path = `${origin}/v1/projects/${project_id}/notices`
        return {
          to: email,
          ...(ended_at === null ? startText(notice, path) : endText(notice, ended_at, path)),
        }
      },
    },
    deps,
    atMost,
    signal,
  )

interface MailText {
  subject: string
  text: string
}

function startText(notice: InterventionMail, path: string): MailText {
  const { intervention_id, kind, pace_per_hour, public_note, project_name } = notice
  const effects: Record<InterventionKind, string> = {
    warn: 'This is a warning. Your mail is not affected.',
    pace: `Mail is still accepted, but sent to at most ${counted(pace_per_hour ?? 1, 'recipient')} per hour.`,
    hold: 'Mail is still accepted, but not sent.',
    lock: 'No mail is accepted, and queued mail is not sent.',
  }
  const subjects: Record<InterventionKind, string> = {
    warn: `Warning for project "${project_name}"`,
    pace: `Sending from project "${project_name}" is slowed down`,
    hold: `Mail from project "${project_name}" is held`,
    lock: `Project "${project_name}" is locked`,
  }
  return {
    subject: subjects[kind],
    text: paragraphs(
      `The operator of this mail service has started an intervention (${kind}) in your project "${project_name}". ${effects[kind]}`,
      noteText(public_note),
      `The intervention is in force ${endOf(notice)}.`,
      `Details: GET ${path}/${intervention_id}. An owner or admin of the project can appeal once: POST ${path}/${intervention_id}/appeal with "text".`,
    ),
  }
}

function endOf({ expires_at, drains_before }: InterventionMail): string {
  if (expires_at !== null) return `until ${expires_at.toISOString()}`
  return drains_before === null
    ? 'until the operator ends it'
    : 'until the mail that was queued at its start has been processed'
}

function endText(
  { kind, public_note, started_at, project_name }: InterventionMail,
  endedAt: Date,
  path: string,
): MailText {
  const subjects: Record<InterventionKind, string> = {
    warn: `Warning for project "${project_name}" has ended`,
    pace: `Pace on project "${project_name}" has ended`,
    hold: `Hold on project "${project_name}" has ended`,
    lock: `Lock on project "${project_name}" has ended`,
  }
  return {
    subject: subjects[kind],
    text: paragraphs(
      `An intervention (${kind}) in your project "${project_name}" has ended. It was in force from ${started_at.toISOString()} to ${endedAt.toISOString()}.`,
      noteText(public_note),
      `Other interventions may still be in force. To list them: GET ${path}?in_force=true.`,
    ),
  }
}

const noteText = (note: string | null): string | null => note && `Note from the operator: ${note}`

const paragraphs = (...texts: (string | null)[]): string => texts.filter((text) => text !== null).join('\n\n')
