/**
 * Compares what was promised with what was received and what the database contains, after the queue has drained.
 * Knows nothing of the service except the names of statuses.
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
  /** Number of events by type. */
  events: Record<string, number>
}

/** Of a request that was not accepted. */
export interface Answer {
  status: number
  error: string
  /** It has `Retry-After`. */
  hasRetryAfter: boolean
}

export interface Evidence {
  promised: readonly Promised[]
  /** Every unsuccessful response. */
  answers: readonly Answer[]
  /** Recipients of requests without a response: their mail may be sent or not. */
  unanswered: readonly string[]
  /** What the MTA has acknowledged, once for each time. */
  received: readonly Promised[]
  stored: readonly Stored[]
  /** Mails in flight at each fault: one list per fault. */
  inFlight: readonly (readonly Promised[])[]
  /** Allowed final statuses of a recipient. */
  finalStatuses: readonly string[]
  /** Minimum and maximum number of events of a type for each recipient. Other types do not matter. */
  told: Readonly<Record<string, readonly [least: number, most: number]>>
}

/** Expected events of delivered mail. */
export const eventsOfDelivered: Evidence['told'] = { 'message.sent': [1, 1], 'message.delivered': [1, 1] }

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
  /** More often than it was in flight at a fault. */
  unexplainedDuplicates: Promised[]
  /** Stored, and not in a final status. */
  unfinished: Stored[]
  /** With more or fewer events than allowed. */
  wrongEventCounts: Stored[]
  /** Received although the response was lost: allowed. */
  sentUnanswered: number
  /** Neither 503 with Retry-After nor 409 request_in_progress. */
  wrongResponses: Answer[]
}

const keyOf = ({ id, recipient }: Promised): string => `${id} ${recipient}`

export function check(evidence: Evidence): Verdict {
  const { promised, answers, unanswered, received, stored, inFlight, finalStatuses, told } = evidence
  const timesReceived = counts(received)
  const timesInFlight = counts(inFlight.flat())
  const promisedKeys = new Set(promised.map(keyOf))
  const promisedRecipients = new Set(promised.map(({ recipient }) => recipient))
  const unansweredRecipients = new Set(unanswered)
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
        (promisedRecipients.has(mail.recipient) || !unansweredRecipients.has(mail.recipient)),
    ),
    duplicates: distinct.reduce((sum, mail) => sum + timesMore(mail), 0),
    unexplainedDuplicates: distinct.filter((mail) => timesMore(mail) > (timesInFlight.get(keyOf(mail)) ?? 0)),
    unfinished: stored.filter(({ status }) => !finalStatuses.includes(status)),
    wrongEventCounts: stored.filter(({ events }) =>
      Object.entries(told).some(([type, [least, most]]) => {
        const times = events[type] ?? 0
        return times < least || times > most
      }),
    ),
    sentUnanswered: distinct.filter(
      (mail) => !promisedKeys.has(keyOf(mail)) && unansweredRecipients.has(mail.recipient),
    ).length,
    wrongResponses: answers.filter(
      ({ status, error, hasRetryAfter }) =>
        !(status === 503 && hasRetryAfter) && !(status === 409 && error === 'request_in_progress'),
    ),
  }
}

/** The faults as sentences; empty if there are none. */
export function faultsOf(verdict: Verdict): string[] {
  const of = (what: string, found: readonly object[]): string[] =>
    found.length === 0 ? [] : [`${found.length} ${what}, such as ${JSON.stringify(found[0])}`]
  return [
    ...(verdict.promised === 0 ? ['nothing was promised, so nothing was proved'] : []),
    ...of('promised and lost', verdict.lost),
    ...of('promised and not stored', verdict.forgotten),
    ...of('received without a request', verdict.strange),
    ...of('received more often than explained', verdict.unexplainedDuplicates),
    ...of('not in a final status', verdict.unfinished),
    ...of('with a wrong number of events', verdict.wrongEventCounts),
    ...of('unexpected responses', verdict.wrongResponses),
  ]
}

function counts(mails: readonly Promised[]): Map<string, number> {
  const found = new Map<string, number>()
  for (const mail of mails) found.set(keyOf(mail), (found.get(keyOf(mail)) ?? 0) + 1)
  return found
}
