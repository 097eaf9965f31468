import type { MessageEvent } from '../../api/operations.gen.ts'
import { ExactTime } from '../../components/relative-time.tsx'
import type { Tone } from '../../components/tone.ts'
import classes from './timeline.module.css'

const labels: Partial<Record<MessageEvent['type'], [label: string, tone: Tone]>> = {
  'message.accepted': ['Accepted', 'calm'],
  'message.suppressed': ['Not sent: address is suppressed', 'warn'],
  'message.sent': ['Sent', 'calm'],
  'message.deferred': ['Deferred; will retry', 'warn'],
  'message.delivered': ['Delivered', 'good'],
  'message.bounced': ['Bounced: permanently rejected', 'bad'],
  'message.failed': ['Failed', 'bad'],
  'message.complained': ['Marked as spam by the recipient', 'bad'],
}

/** The events of a message, oldest first. */
export function Timeline({ events }: { events: MessageEvent[] }) {
  return (
    <ol className={classes.timeline} aria-label="Events">
      {events.map(({ id, type, recipient, data, created_at }) => {
        const [label, tone] = labels[type] ?? [type, 'calm']
        const reply = [data['status'], data['diagnostic']].filter((part) => typeof part === 'string')
        return (
          <li key={id} data-tone={tone}>
            <div className={classes.line}>
              <span>
                <strong>{label}</strong>
                {recipient !== null && <span className={classes.recipient}> {recipient}</span>}
              </span>
              <span className={classes.time}>
                <ExactTime at={created_at} />
              </span>
            </div>
            {reply.length > 0 && <code className={classes.reply}>{reply.join(' · ')}</code>}
          </li>
        )
      })}
    </ol>
  )
}
