import type { Sink } from '../bench/sink.ts'
import type { Postfix } from '../server/src/testing/peers/postfix.ts'
import type { Promised } from './check.ts'
import type { Reporter } from './reporter.ts'
import type { Environment } from './run.ts'

const pollEveryMs = 500
/** A mail that Postfix sends to the sink leaves its queue before its report is there. */
const emptyLooks = 4

/** Postfix makes and brings the reports itself: it has brought them all when it has nothing left. */
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
    // A mail that Postfix is told to try again just while it tries it waits for the next one to come in, and none does.
    nudge: () => postfix.flush().catch(() => {}),
    async stop() {
      clearInterval(timer)
    },
  }
}

/** Mails that Postfix has in this moment, its reports left out. */
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
