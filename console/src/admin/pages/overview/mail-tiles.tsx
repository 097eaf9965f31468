import type { Overview } from '../../../api/operations.gen.ts'
import { age, decimal, number } from '../../../components/numbers.ts'
import { StatTile, StatTiles } from '../../../components/stat-tiles.tsx'
import type { Tone } from '../../../components/tone.ts'
import { type CountedKind, toneOfRate } from '../../../resources/usage/mail-charts.tsx'

/** Ready mail is sent within seconds. There is an alert after five minutes. */
const oldAfterSeconds = { warn: 60, bad: 300 }

/** The mail of the last 24 hours, and what waits now. */
export function MailTiles({ overview: { mail, queue } }: { overview: Overview }) {
  const noteOf = (kind: CountedKind) => `${number(mail.total[kind])} in 24 hours`
  const rate = (value: number | null) => (value === null ? '–' : `${decimal(value)} %`)
  const oldest = Math.max(0, ...queue.oldest_ready.map(({ seconds }) => seconds))
  const { ready, leased, deferred } = queue.states
  return (
    <StatTiles>
      <StatTile label="Sent" value={number(mail.total.sent)} note="in 24 hours" />
      <StatTile
        label="Bounced"
        value={rate(mail.bounce_rate)}
        tone={toneOfRate('bounced', (mail.bounce_rate ?? 0) / 100)}
        note={noteOf('bounced')}
      />
      <StatTile
        label="Complained"
        value={rate(mail.complaint_rate)}
        tone={toneOfRate('complained', (mail.complaint_rate ?? 0) / 100)}
        note={noteOf('complained')}
      />
      <StatTile label="Failed" value={rate(mail.failure_rate)} note={noteOf('failed')} />
      <StatTile
        label="Ready to send"
        value={upToLimit(ready)}
        tone={toneOfAge(oldest)}
        note={
          queue.oldest_ready.length === 0
            ? `${upToLimit(leased)} sending · ${upToLimit(deferred)} deferred`
            : `oldest waits ${age(oldest)} · ${upToLimit(deferred)} deferred`
        }
      />
    </StatTiles>
  )
}

const toneOfAge = (seconds: number): Tone | undefined =>
  seconds >= oldAfterSeconds.bad ? 'bad' : seconds >= oldAfterSeconds.warn ? 'warn' : undefined

/** The server stops counting at 10,000 for each cell. */
export const upToLimit = (count: number): string => (count < 10_000 ? number(count) : `${number(count)}+`)
