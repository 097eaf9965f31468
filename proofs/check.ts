/**
 * Compares the acknowledged requests with the received messages and the database contents, after the queue has drained.
 * Shares no code with the service, only the status names.
 */
export interface Promised {
  /** The message's id. */
  id: string
  recipient: string
}

/** One recipient of one message, as stored in the database at the end. */
export interface Stored {
  id: string
  recipient: string
  status: string
  /** Number of events by type. */
  events: Record<string, number>
}

/** The response to a rejected request. */
export interface Answer {
  status: number
  error: string
  /** The response has `Retry-After`. */
  hasRetryAfter: boolean
}

export interface Evidence {
  promised: readonly Promised[]
  /** Every unsuccessful response. */
  answers: readonly Answer[]
  /** Recipients of requests without a response. Their messages may or may not be sent. */
  unanswered: readonly string[]
  /** The messages that the MTA has acknowledged, including duplicates. */
  received: readonly Promised[]
  stored: readonly Stored[]
  /** Messages in flight at each fault: one list per fault. */
  inFlight: readonly (readonly Promised[])[]
  /** The allowed final statuses of a recipient. */
  finalStatuses: readonly string[]
  /** The minimum and maximum number of events of each type per recipient. Other types are ignored. */
  expectedEvents: Readonly<Record<string, readonly [least: number, most: number]>>
}

/** The expected events for delivered mail. */
export const eventsOfDelivered: Evidence['expectedEvents'] = {
  'message.sent': [1, 1],
  'message.delivered': [1, 1],
}

export interface Verdict {
  promised: number
  received: number
  /** Acknowledged but not received. */
  lost: Promised[]
  /** Acknowledged but not in the database. */
  forgotten: Promised[]
  /** Received, but not requested by any acknowledged or unanswered request, or received with a different id. */
  strange: Promised[]
  /** Received more than once. */
  duplicates: number
  /** Received more often than can be explained by the faults that occurred while the message was in flight. */
  unexplainedDuplicates: Promised[]
  /** Stored, but not in a final status. */
  unfinished: Stored[]
  /** Stored with more or fewer events than allowed. */
  wrongEventCounts: Stored[]
  /** Received even though the response was lost. This is allowed. */
  sentUnanswered: number
  /** Neither 503 with Retry-After nor 409 request_in_progress. */
  wrongResponses: Answer[]
}

const keyOf = ({ id, recipient }: Promised): string => `${id} ${recipient}`

export function check(evidence: Evidence): Verdict {
  const { promised, answers, unanswered, received, stored, inFlight, finalStatuses, expectedEvents } =
    evidence
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
      Object.entries(expectedEvents).some(([type, [least, most]]) => {
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
