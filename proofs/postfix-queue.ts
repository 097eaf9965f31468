import type { Sink } from '../bench/sink.ts'
import type { Postfix } from '../server/src/testing/peers/postfix.ts'
import type { Promised } from './check.ts'
import type { Reporter } from './reporter.ts'
import type { Environment } from './run.ts'

const pollEveryMs = 500
/** Consecutive empty polls required, because a message leaves the queue before its report is queued. */
const emptyLooks = 4

/** Postfix creates and delivers the reports itself. When its queue is empty, all reports have been delivered. */
export function postfixAsReporter(postfix: Postfix, sink: Sink): Reporter {
  let empty = 0
  const readQueue = async (): Promise<void> => {
    const queued = await postfix.queue().catch(() => undefined)
    empty = queued?.length === 0 ? empty + 1 : 0
  }
  const timer = setInterval(() => void readQueue(), pollEveryMs)
  return {
    taken: () => (empty >= emptyLooks ? sink.count() : -1),
    refused: [],
    // A flush during an attempt has no effect on that message, so the queue is flushed again.
    nudge: () => postfix.flush().catch(() => {}),
    async stop() {
      clearInterval(timer)
    },
  }
}

/** The messages currently in Postfix's queue, excluding its reports. */
export async function mailsInQueue(
  postfix: Postfix,
  { query }: Pick<Environment, 'query'>,
): Promise<Promised[]> {
  const queued = await postfix.queue()
  const recipients = queued
    .filter(({ sender }) => sender !== 'MAILER-DAEMON')
    .flatMap((mail) => mail.recipients.map(({ address }) => address))
  return query<Promised>(
    'select message_id as id, address as recipient from mail.recipients where address = any($1)',
    [recipients],
  )
}
