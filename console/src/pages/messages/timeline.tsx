import type { MessageEvent } from '../../api/operations.gen.ts'
import type { Tone } from '../../components/badge.tsx'
import { When } from '../../components/when.tsx'
import classes from './timeline.module.css'

const words: Partial<Record<MessageEvent['type'], [sentence: string, tone: Tone]>> = {
  'message.accepted': ['Accepted', 'calm'],
  'message.suppressed': ['Left out, because the address is suppressed', 'warn'],
  'message.sent': ['Handed to the mail server', 'calm'],
  'message.deferred': ['Put off for now by the receiving side; it is tried again', 'warn'],
  'message.delivered': ['Delivered', 'good'],
  'message.bounced': ['Sent back: the receiving side refuses it for good', 'bad'],
  'message.failed': ['Given up', 'bad'],
  'message.complained': ['Marked as unwanted by its recipient', 'bad'],
}

/** Everything that happened to a message, in its order, in words. */
export function Timeline({ events }: { events: MessageEvent[] }) {
  return (
    <ol className={classes.timeline} aria-label="What happened">
      {events.map(({ id, type, recipient, data, created_at }) => {
        const [sentence, tone] = words[type] ?? [type, 'calm']
        const said = [data['status'], data['diagnostic']].filter((part) => typeof part === 'string')
        return (
          <li key={id} data-tone={tone}>
            <div className={classes.line}>
              <span>
                <strong>{sentence}</strong>
                {recipient !== null && <span className={classes.whom}> {recipient}</span>}
              </span>
              <span className={classes.when}>
                <When at={created_at} />
              </span>
            </div>
            {said.length > 0 && <code className={classes.said}>{said.join(' · ')}</code>}
          </li>
        )
      })}
    </ol>
  )
}
