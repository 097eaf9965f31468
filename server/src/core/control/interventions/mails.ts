import type { Tx } from '../../../platform/db/db.ts'
import { counted } from '../../shared/counts.ts'
import { labelOf } from '../notifications/customer-text.ts'
import type { AddressedMail, Block, ComposeDeps, QueuedSystemMail } from '../notifications/queued-mail.ts'
import { findMailed, type MailedIntervention } from './mails.sql.ts'
import type { InterventionKind } from './wire.ts'

/**
 * The notice to the owner of a project about an intervention that started or ended. The text describes the intervention at the
 * time of sending: if it ended before its start was mailed, one message says both. The reason is never mailed.
 */
export async function composeInterventionMail(
  tx: Tx,
  { subject_id }: QueuedSystemMail,
  { publicUrl: { origin } }: ComposeDeps,
): Promise<AddressedMail | null> {
  const found = await findMailed(tx, subject_id)
  if (!found) return null
  const { email: to, project_id, ended_at } = found
  const path = `${origin}/v1/projects/${project_id}/notices`
  return { to, ...(ended_at === null ? startText(found, path) : endText(found, ended_at, path)) }
}

type MailText = Omit<AddressedMail, 'to'>

function startText(notice: MailedIntervention, path: string): MailText {
  const { id, kind, pace_per_hour, public_note } = notice
  const project = projectOf(notice)
  const effects: Record<InterventionKind, string> = {
    warn: 'This is a warning. Your mail is not affected.',
    pace: `Mail is still accepted, but sent to at most ${counted(pace_per_hour ?? 1, 'recipient')} per hour.`,
    hold: 'Mail is still accepted, but not sent.',
    lock: 'No mail is accepted, and queued mail is not sent.',
  }
  const subjects: Record<InterventionKind, string> = {
    warn: `Warning for ${project}`,
    pace: `Sending from ${project} is slowed down`,
    hold: `Mail from ${project} is held`,
    lock: `${project.replace('project', 'Project')} is locked`,
  }
  return {
    subject: subjects[kind],
    blocks: paragraphs(
      `The operator of this mail service has started an intervention (${kind}) in your ${project}. ${effects[kind]}`,
      noteOf(public_note),
      `The intervention is in force ${endOf(notice)}.`,
      `Details: GET ${path}/${id}. An owner or admin of the project can appeal once: POST ${path}/${id}/appeal with "text".`,
    ),
  }
}

function endOf({ expires_at, drains_before }: MailedIntervention): string {
  if (expires_at !== null) return `until ${expires_at.toISOString()}`
  return drains_before === null
    ? 'until the operator ends it'
    : 'until the mail that was queued at its start has been processed'
}

function endText(notice: MailedIntervention, endedAt: Date, path: string): MailText {
  const { kind, public_note, started_at } = notice
  const project = projectOf(notice)
  const subjects: Record<InterventionKind, string> = {
    warn: `Warning for ${project} has ended`,
    pace: `Pace on ${project} has ended`,
    hold: `Hold on ${project} has ended`,
    lock: `Lock on ${project} has ended`,
  }
  return {
    subject: subjects[kind],
    blocks: paragraphs(
      `An intervention (${kind}) in your ${project} has ended. It was in force from ${started_at.toISOString()} to ${endedAt.toISOString()}.`,
      noteOf(public_note),
      `Other interventions may still be in force. To list them: GET ${path}?in_force=true.`,
    ),
  }
}

const projectOf = ({ project_id, project_name }: MailedIntervention): string =>
  labelOf('project', project_id, project_name)

const noteOf = (note: string | null): Block | null => (note === null ? null : { note })

const paragraphs = (...blocks: (Block | null)[]): Block[] => blocks.filter((block) => block !== null)
