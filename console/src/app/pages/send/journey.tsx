import { Loader, Title } from '@mantine/core'
import type { Message, MessageEvent } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'
import { Address } from '../../../components/address.tsx'
import { Status } from '../../../components/badge.tsx'
import { To } from '../../../components/link.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { Sentence } from '../../../components/sentence.tsx'
import { QueryState } from '../../../components/states.tsx'
import type { Tone } from '../../../components/tone.ts'
import classes from './journey.module.css'

/** While the tab is visible. */
const pollMs = 1000

const finalStatuses: Message['status'][] = [
  'delivered',
  'bounced',
  'failed',
  'complained',
  'suppressed',
  'canceled',
]

/** What happens to a message with one recipient, as it happens. */
export function Journey({ projectId, id }: { projectId: number; id: string }) {
  const path = { project_id: projectId, id }
  const message = useAnswer('customer.messages.show', { path }, { pollMs: (data) => pollUntilFinal(data) })
  const isFinal = isDone(message.data)
  const events = useAnswer(
    'customer.messages.events',
    { path },
    // The status can be read just before its event exists here.
    { pollMs: (answer) => (isFinal && hasEnded(answer?.data ?? [], message.data) ? false : pollMs) },
  )
  const explained = useAnswer('customer.messages.explain', { path }, { pollMs: isFinal ? false : pollMs })
  return (
    <section aria-label="Journey" className={classes.panel}>
      <QueryState query={message}>
        {({ status, recipients, created_at }) => (
          <>
            <div className={classes.head}>
              <Title order={2}>
                To <Address of={recipients[0]?.address ?? ''} />
              </Title>
              <span role="status">
                <Status value={status} />
              </span>
            </div>
            <ol className={classes.steps}>
              <Steps events={events.data?.data ?? []} acceptedAt={created_at} />
              {!isFinal && (
                <li data-tone="next">
                  <Loader size={12} aria-hidden="true" className={classes.loader ?? ''} />
                  <span>
                    <Sentence text={explained.data?.recipients[0]?.message ?? 'Loading…'} />
                  </span>
                </li>
              )}
            </ol>
            <To to="/projects/$projectId/messages/$id" params={{ projectId: String(projectId), id }} fz="sm">
              Show the message
            </To>
          </>
        )}
      </QueryState>
    </section>
  )
}

const isDone = (message: Message | undefined): boolean =>
  message !== undefined && finalStatuses.includes(message.status)

/** Whether the events contain that of the final status. A cancellation has none. */
const hasEnded = (events: MessageEvent[], message: Message | undefined): boolean =>
  message?.status === 'canceled' || events.some(({ type }) => type === `message.${message?.status}`)

const pollUntilFinal = (message: Message | undefined): number | false => (isDone(message) ? false : pollMs)

const steps: Partial<Record<MessageEvent['type'], [label: string, tone: Tone]>> = {
  'message.accepted': ['Accepted', 'good'],
  'message.suppressed': ['Not sent: the address is suppressed', 'bad'],
  'message.sent': ['Handed over to the mail server', 'good'],
  'message.deferred': ['Deferred: the mail server tries again', 'warn'],
  'message.delivered': ['Delivered', 'good'],
  'message.bounced': ['Bounced: permanently rejected', 'bad'],
  'message.failed': ['Failed', 'bad'],
  'message.complained': ['Marked as spam by the recipient', 'bad'],
}

function Steps({ events, acceptedAt }: { events: MessageEvent[]; acceptedAt: string }) {
  return events.map(({ id, type, data, created_at }) => {
    const [label, tone] = steps[type] ?? [type, 'calm']
    const reply = [data['status'], data['diagnostic']].filter((part) => typeof part === 'string')
    const seconds = (Date.parse(created_at) - Date.parse(acceptedAt)) / 1000
    return (
      <li key={id} data-tone={tone}>
        <div className={classes.line}>
          <strong>{label}</strong>
          <span className={classes.time}>
            <ExactTime at={created_at} />
          </span>
        </div>
        {type !== 'message.accepted' && (
          <span className={classes.time}>{elapsed(seconds)} after acceptance</span>
        )}
        {reply.length > 0 && <code className={classes.reply}>{reply.join(' · ')}</code>}
      </li>
    )
  })
}

/** "0.4 s", "12 s", "3 min 5 s". */
function elapsed(seconds: number): string {
  const whole = Math.max(0, seconds)
  if (whole < 10) return `${whole.toFixed(1)} s`
  if (whole < 60) return `${Math.round(whole)} s`
  return `${Math.floor(whole / 60)} min ${Math.round(whole % 60)} s`
}
