import Type, { type Static } from 'typebox'
import type { ReadTx } from '../../../platform/db/db.ts'
import type { InterventionKind } from '../../control/interventions/wire.ts'
import { countCap, counted, countText } from '../../shared/counts.ts'
import { MessageId, nullable, oneOf, Timestamp } from '../../shared/wire.ts'
import { leaseSeconds } from '../dispatch/claims.ts'
import { awaitedSeconds } from '../dispatch/retry-policy.ts'
import {
  countAhead,
  type ExplainedRecipient,
  findMessageFacts,
  listExplainedRecipients,
  type MessageFacts,
} from './explain-message.sql.ts'
import { missingMessage } from './messages.ts'
import { maySend } from './sending-checks.ts'
import { recipientStatuses } from './wire.ts'

// Explains what each recipient of a message waits for, since when, and when it is tried next. The conditions for ready mail
// are those of a claim (dispatch/claims.sql.ts, control/projects/may-send.ts).

const waits = [
  'schedule',
  'operator_hold',
  'project_lock',
  'project_hold',
  'subscription',
  'project_pace',
  'worker',
  'attempt',
  'retry',
  'provider_report',
  'delivery_report',
] as const
type Wait = (typeof waits)[number]

const RecipientExplanation = Type.Object(
  {
    address: Type.String(),
    status: oneOf(recipientStatuses),
    waits_for: nullable(
      oneOf(waits, {
        description:
          '`schedule`: the sender chose a later time. `operator_hold`: the operator has paused sending for all projects. `project_lock`, `project_hold`, `project_pace`: an intervention. `subscription`: the subscription is not active. `worker`: ready, waiting for a worker. `attempt`: being handed over. `retry`: the last attempt failed. `provider_report`: the provider may have accepted it, but its response was lost. `delivery_report`: the mail server accepted it and delivers it. Null if nothing more happens.',
      }),
    ),
    since: nullable({
      ...Timestamp,
      description: 'When the cause began, if that is known. A cause can be older than the message.',
    }),
    next_attempt_at: nullable({
      ...Timestamp,
      description: 'When it is handed over next. An estimate for paced mail; null if that is not known.',
    }),
    message: Type.String({ description: 'The same in a sentence, with what would change it.' }),
  },
  { additionalProperties: false },
)

export const MessageExplanation = Type.Object(
  {
    message_id: MessageId,
    project_id: Type.Integer(),
    recipients: Type.Array(RecipientExplanation),
  },
  { title: 'MessageExplanation', additionalProperties: false },
)

/** What the mail database knows. */
export interface MessageState extends MessageFacts {
  projectId: number
  id: string
  recipients: ExplainedRecipient[]
  /** Recipients that are handed over before the message's first ready one. Null if that is not known. */
  ahead: number | null
}

/** Undefined if the message does not exist. */
export async function readMessageState(
  tx: ReadTx,
  projectId: number,
  id: string,
): Promise<MessageState | undefined> {
  const facts = await findMessageFacts(tx, projectId, id)
  if (!facts) return undefined
  const recipients = await listExplainedRecipients(tx, projectId, id)
  const due = recipients.flatMap(({ state, due_at }) => (state === 'ready' ? [due_at.getTime()] : []))
  const isPaced = facts.restriction === 'pace' && due.length > 0
  const counted = isPaced ? await countAhead(tx, projectId, new Date(Math.min(...due))) : null
  const ahead = counted === null || counted > countCap ? null : counted
  return { ...facts, projectId, id, recipients, ahead }
}

interface InForce {
  kind: InterventionKind
  created_at: string
}

/**
 * Returns the explanation with those of the interventions in force that a recipient waits for. `inForce`: in the order in
 * which they began.
 */
export function explainMessage<Intervention extends InForce>(
  asked: { projectId: number; id: string },
  explained: MessageState | undefined,
  inForce: readonly Intervention[],
): Static<typeof MessageExplanation> & { interventions: Intervention[] } {
  if (!explained) return missingMessage(asked.projectId, asked.id)
  const recipients = explained.recipients.map((recipient) => recipientOf(explained, recipient, inForce))
  const awaited = recipients.map(({ waits_for }) => waits_for && kinds[waits_for])
  return {
    message_id: explained.id,
    project_id: explained.projectId,
    recipients,
    interventions: inForce.filter(({ kind }) => awaited.includes(kind)),
  }
}

/** The interventions behind a wait. */
const kinds: Partial<Record<Wait, InterventionKind>> = {
  project_lock: 'lock',
  project_hold: 'hold',
  project_pace: 'pace',
}

interface Explained {
  waits_for: Wait | null
  since?: Date | null
  next_attempt_at?: Date | null
  message: string
}

function recipientOf(
  facts: MessageState,
  recipient: ExplainedRecipient,
  inForce: readonly InForce[],
): Static<typeof RecipientExplanation> {
  const { address, status } = recipient
  const block = blockOf(facts, recipient)
  const { waits_for, since, next_attempt_at, message } = block ?? waitOf(facts, recipient)
  const began = inForce.find(({ kind }) => waits_for && kinds[waits_for] === kind)?.created_at
  return {
    address,
    status: status === 'queued' && isProjectBlocked(facts) ? 'held' : status,
    waits_for,
    since: began ?? since?.toISOString() ?? null,
    next_attempt_at: next_attempt_at?.toISOString() ?? null,
    message,
  }
}

const isProjectBlocked = ({ is_locked, restriction, subscription }: MessageFacts): boolean =>
  is_locked || restriction === 'hold' || !maySend(subscription)

/** What keeps workers from claiming the recipient now or at its next attempt. */
function blockOf(facts: MessageFacts, { state, provider }: ExplainedRecipient): Explained | undefined {
  if (state !== 'ready' && state !== 'deferred') return undefined
  const operatorHold = facts.holds.find(({ scope }) => scope === 'all' || scope === provider)
  if (operatorHold)
    return {
      waits_for: 'operator_hold',
      since: new Date(operatorHold.held_at),
      message:
        'The operator of this service has paused sending. The message is sent when sending resumes, or fails after 7 days.',
    }
  if (facts.is_locked)
    return {
      waits_for: 'project_lock',
      message:
        'The operator has locked the project. The message is sent when the lock ends, or fails after 7 days.',
    }
  if (facts.restriction === 'hold')
    return {
      waits_for: 'project_hold',
      message:
        "The operator holds the project's mail. The message is sent when the hold ends, or fails after 7 days.",
    }
  if (maySend(facts.subscription)) return undefined
  return {
    waits_for: 'subscription',
    message: `The subscription is "${facts.subscription}". The message is sent when the subscription is active again, or fails after 7 days.`,
  }
}

/** The estimate assumes that the pace does not change, and that the message's recipients are handed over in their order. */
function pacedWait(facts: MessageState, recipient: ExplainedRecipient): Explained {
  const { pace_per_hour, pace, ahead, now, recipients } = facts
  const ready = recipients.filter(({ state }) => state === 'ready')
  const seconds =
    pace && ahead !== null
      ? pace.debt + (ahead + ready.indexOf(recipient) - (pace.burst - 1)) * pace.interval
      : null
  return {
    waits_for: 'project_pace',
    next_attempt_at: seconds === null ? null : new Date(now.getTime() + Math.max(0, seconds) * 1000),
    message: `The project's mail is paced: at most ${counted(pace_per_hour ?? 1, 'recipient')} per hour. Recipients ahead of this message: ${countText(ahead ?? countCap + 1)}.`,
  }
}

const before = (at: Date | null, seconds: number): Date | null =>
  at && new Date(at.getTime() - seconds * 1000)

function waitOf(facts: MessageState, recipient: ExplainedRecipient): Explained {
  const { state, provider, due_at, leased_until, first_attempt_at, status, updated_at } = recipient
  switch (state) {
    case 'ready':
      if (facts.restriction === 'pace' && provider !== 'none') return pacedWait(facts, recipient)
      return {
        ...{ waits_for: 'worker', since: due_at, next_attempt_at: facts.now },
        message: 'Nothing blocks the message. It waits in the queue for a worker.',
      }
    case 'scheduled':
      return {
        ...{ waits_for: 'schedule', since: facts.created_at, next_attempt_at: due_at },
        message: `The sender scheduled the message for ${due_at.toISOString()}.`,
      }
    case 'leased':
      return {
        ...{ waits_for: 'attempt', since: before(leased_until, leaseSeconds) },
        message: 'A worker is handing the message over now.',
      }
    case 'awaiting':
      return {
        ...{ waits_for: 'provider_report', since: before(due_at, awaitedSeconds) },
        message:
          'The connection to the provider was lost, and the provider may have accepted the message. If it does not report this within an hour, the recipient fails. The message is not sent twice.',
      }
    case 'deferred':
      return status === 'deferred'
        ? {
            ...{ waits_for: 'retry', since: updated_at, next_attempt_at: due_at },
            message: `The mail server temporarily rejected the message: ${sentence(recipient.reply)} Sending is retried for up to 3 days.`,
          }
        : {
            ...{ waits_for: 'retry', since: first_attempt_at, next_attempt_at: due_at },
            message: 'The mail server could not be reached. Sending is retried for up to 3 days.',
          }
    default:
      return finished(recipient)
  }
}

function finished({ status, reply, updated_at }: ExplainedRecipient): Explained {
  if (status === 'sent' || status === 'deferred')
    return {
      ...{ waits_for: 'delivery_report', since: updated_at },
      message:
        status === 'sent'
          ? 'The mail server accepted the message and delivers it. It has not reported the result yet.'
          : `The mail server could not deliver the message yet and tries again: ${sentence(reply)}`,
    }
  const outcomes: Partial<Record<typeof status, string>> = {
    delivered: 'The message was delivered.',
    bounced: `The message bounced: ${sentence(reply)}`,
    failed: `The message failed: ${sentence(reply)}`,
    complained: 'The recipient reported the message as spam.',
    suppressed: 'The address is suppressed, so the message was not sent to it.',
    canceled: 'The message was canceled before it was sent.',
  }
  return {
    waits_for: null,
    message: outcomes[status] ?? 'The queue is being updated. Try again in a moment.',
  }
}

const sentence = (reply: string | null): string =>
  reply === null ? 'no reply was recorded.' : /[.!?]$/.test(reply) ? reply : `${reply}.`
