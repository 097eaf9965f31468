/**
 * Holds what was promised against what was received and what the database says, after everything has come to rest.
 * Knows nothing of the service but the names of statuses.
 */
export interface Promised {
  /** Of the message. */
  id: string
  recipient: string
}

/** One recipient of one message, as the database has it in the end. */
export interface Stored {
  id: string
  recipient: string
  status: string
  /** Events by type: how often each was told. */
  events: Record<string, number>
}

/** Of a request that was not accepted. */
export interface Answer {
  status: number
  error: string
  /** It says when to come again. */
  hasRetryAfter: boolean
}

export interface Evidence {
  promised: readonly Promised[]
  /** Every answer that was no yes. */
  answers: readonly Answer[]
  /** Recipients of requests that were not answered: whether their mail is sent is nobody's fault. */
  unheard: readonly string[]
  /** What the MTA has said yes to, once for each time. */
  received: readonly Promised[]
  stored: readonly Stored[]
  /** Mails that were between two hands in the moment when something went wrong: a list for each time. */
  inFlight: readonly (readonly Promised[])[]
  /** In which a recipient may be in the end. */
  finalStatuses: readonly string[]
  /** How often an event of a type is to be told of each recipient: at least, and at most. Others do not matter. */
  told: Readonly<Record<string, readonly [least: number, most: number]>>
}

/** What is to be told of mail that was delivered. */
export const toldOfDelivered: Evidence['told'] = { 'message.sent': [1, 1], 'message.delivered': [1, 1] }

export interface Verdict {
  promised: number
  received: number
  /** Promised, and not received. */
  lost: Promised[]
  /** Promised, and not in the database. */
  forgotten: Promised[]
  /** Received, and neither promised nor asked for without an answer; or under another id than promised. */
  strange: Promised[]
  /** Received more than once. */
  duplicates: number
  /** More often than it was in flight when something went wrong. */
  unexplainedDuplicates: Promised[]
  /** Stored, and not in a final status. */
  unfinished: Stored[]
  /** Told more often than it may be, or less often than it must be. */
  wronglyTold: Stored[]
  /** Received though the answer was lost: allowed. */
  sentUnheard: number
  /** Neither "not now, come again" nor "the first of these requests is still under way". */
  wrongAnswers: Answer[]
}

const keyOf = ({ id, recipient }: Promised): string => `${id} ${recipient}`

export function check(evidence: Evidence): Verdict {
  const { promised, answers, unheard, received, stored, inFlight, finalStatuses, told } = evidence
  const timesReceived = counts(received)
  const timesInFlight = counts(inFlight.flat())
  const promisedKeys = new Set(promised.map(keyOf))
  const promisedRecipients = new Set(promised.map(({ recipient }) => recipient))
  const unheardRecipients = new Set(unheard)
  const storedKeys = new Set(stored.map(keyOf))
  const distinct = [...new Map(received.map((mail) => [keyOf(mail), mail])).values()]
  const timesMore = (mail: Promised): number => (timesReceived.get(keyOf(mail)) ?? 0) - 1
  return {
    promised: promised.length,
    received: received.length,
    lost: promised.filter((mail) => !timesReceived.has(keyOf(mail))),
    forgotten: promised.filter((mail) => !storedKeys.has(keyOf(mail))),
    strange: distinct.filter(
      (mail) =>
        !promisedKeys.has(keyOf(mail)) &&
        (promisedRecipients.has(mail.recipient) || !unheardRecipients.has(mail.recipient)),
    ),
    duplicates: distinct.reduce((sum, mail) => sum + timesMore(mail), 0),
    unexplainedDuplicates: distinct.filter((mail) => timesMore(mail) > (timesInFlight.get(keyOf(mail)) ?? 0)),
    unfinished: stored.filter(({ status }) => !finalStatuses.includes(status)),
    wronglyTold: stored.filter(({ events }) =>
      Object.entries(told).some(([type, [least, most]]) => {
        const times = events[type] ?? 0
        return times < least || times > most
      }),
    ),
    sentUnheard: distinct.filter(
      (mail) => !promisedKeys.has(keyOf(mail)) && unheardRecipients.has(mail.recipient),
    ).length,
    wrongAnswers: answers.filter(
      ({ status, error, hasRetryAfter }) =>
        !(status === 503 && hasRetryAfter) && !(status === 409 && error === 'request_in_progress'),
    ),
  }
}

/** What must not be, in words; nothing when all is well. */
export function faultsOf(verdict: Verdict): string[] {
  const of = (what: string, found: readonly object[]): string[] =>
    found.length === 0 ? [] : [`${found.length} ${what}, such as ${JSON.stringify(found[0])}`]
  return [
    ...(verdict.promised === 0 ? ['nothing was promised, so nothing was proved'] : []),
    ...of('promised and lost', verdict.lost),
    ...of('promised and not stored', verdict.forgotten),
    ...of('received and never asked for', verdict.strange),
    ...of('received more often than explained', verdict.unexplainedDuplicates),
    ...of('not in a final status', verdict.unfinished),
    ...of('told of too often or too seldom', verdict.wronglyTold),
    ...of('answered wrongly', verdict.wrongAnswers),
  ]
}

function counts(mails: readonly Promised[]): Map<string, number> {
  const found = new Map<string, number>()
  for (const mail of mails) found.set(keyOf(mail), (found.get(keyOf(mail)) ?? 0) + 1)
  return found
}
