import { type OwnerNoticeDeps, sendOwnerNotices } from '../notifications/owner-notices.ts'
import { deleteLate, deleteNotice, type InterventionNotice, listNotices } from './notice-mails.sql.ts'
import type { InterventionKind } from './wire.ts'

/**
 * Notices to the owner of a project about an intervention that started or ended. The text describes the intervention at the
 * time of sending: if it ended before its start was mailed, one message says both. The reason is never mailed.
 */
export const sendInterventionNotices = (
  deps: OwnerNoticeDeps,
  atMost: number,
  signal: AbortSignal,
): Promise<void> =>
  sendOwnerNotices(
    {
      subject: 'a project with an intervention',
      ...{ list: listNotices, delete: deleteNotice, deleteLate },
      idsOf: ({ project_id, intervention_id }) => ({ project_id, intervention_id }),
      mailFor(notice: InterventionNotice, { origin }) {
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

function startText(notice: InterventionNotice, path: string): MailText {
  const { intervention_id, kind, pace_per_hour, public_note, expires_at, project_name } = notice
  const effects: Record<InterventionKind, string> = {
    warn: 'This is a warning. Your mail is not affected.',
    pace: `Mail is still accepted, but at most ${pace_per_hour} recipients per hour are handed over.`,
    hold: 'Mail is still accepted, but not handed over for delivery.',
    lock: 'No mail is accepted, and queued mail is not handed over for delivery.',
  }
  const subjects: Record<InterventionKind, string> = {
    warn: `Warning for project "${project_name}"`,
    pace: `Sending from project "${project_name}" is slowed down`,
    hold: `Mail from project "${project_name}" is held`,
    lock: `Project "${project_name}" is locked`,
  }
  const end = expires_at === null ? 'until the operator ends it' : `until ${expires_at.toISOString()}`
  return {
    subject: subjects[kind],
    text: paragraphs(
      `The operator of this mail service has started an intervention (${kind}) in your project "${project_name}". ${effects[kind]}`,
      noteText(public_note),
      `The intervention is in force ${end}.`,
      `To read it: GET ${path}/${intervention_id}. To object, once: POST ${path}/${intervention_id}/appeal with "text". Only owners and admins of the project can appeal.`,
    ),
  }
}

function endText(
  { kind, public_note, started_at, project_name }: InterventionNotice,
  endedAt: Date,
  path: string,
): MailText {
  const subjects: Record<InterventionKind, string> = {
    warn: `Warning for project "${project_name}" has ended`,
    pace: `Sending from project "${project_name}" is no longer slowed down by an intervention`,
    hold: `Hold of project "${project_name}" has ended`,
    lock: `Lock of project "${project_name}" has ended`,
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
