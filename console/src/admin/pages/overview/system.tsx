import { Title } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Overview } from '../../../api/operations.gen.ts'
import { Badge } from '../../../components/badge.tsx'
import { DescriptionList } from '../../../components/description-list.tsx'
import { age } from '../../../components/numbers.ts'
import { ExactTime, RelativeTime } from '../../../components/relative-time.tsx'
import { upToLimit } from './mail-tiles.tsx'
import { providerNames } from './providers.ts'

/** In seconds, as in the alerts (deploy/prometheus/alerts.yaml). */
const lateAfter = { ready: 300, outbox: 120, uncovered: 600 }

/** The queue, the audit log's checkpoints and the outboxes. */
export function System({ overview }: { overview: Overview }) {
  const { queue, checkpoint, outbox_seconds, cells } = overview
  const { ready, leased, deferred, scheduled, awaiting } = queue.states
  const isSplit = cells.length > 1
  const nameOf = (label: string, name: string) => (isSplit ? `${label} (${name})` : label)
  const items: [string, ReactNode][] = [
    [
      'Queue',
      `${upToLimit(ready)} ready · ${upToLimit(leased)} sending · ${upToLimit(deferred)} deferred · ${upToLimit(scheduled)} scheduled · ${upToLimit(awaiting)} awaiting a report`,
    ],
    ...queue.oldest_ready.map(({ provider, seconds }): [string, ReactNode] => [
      `Oldest for ${providerNames[provider]}`,
      <Lag key={provider} seconds={seconds} late={lateAfter.ready} />,
    ]),
    [
      'Last audit checkpoint',
      checkpoint.last_at === null ? 'none' : <RelativeTime key="checkpoint" at={checkpoint.last_at} />,
    ],
    [
      'Audit entries without checkpoint',
      checkpoint.uncovered_seconds === null ? (
        'none'
      ) : (
        <Lag
          key="uncovered"
          seconds={checkpoint.uncovered_seconds}
          late={lateAfter.uncovered}
          before="oldest"
        />
      ),
    ],
    ['Outbox to mail', lagOf(outbox_seconds)],
    ...cells.flatMap((cell): [string, ReactNode][] =>
      cell.is_reachable
        ? [
            [nameOf('Outbox to control', cell.name), lagOf(cell.outbox_seconds)],
            [
              nameOf('Mail counted until', cell.name),
              cell.counted_until === null ? 'not yet' : <ExactTime key={cell.name} at={cell.counted_until} />,
            ],
          ]
        : [],
    ),
  ]
  return (
    <section>
      <Title order={2} mb="sm">
        System
      </Title>
      <DescriptionList items={items} />
    </section>
  )
}

const lagOf = (seconds: number | null): ReactNode =>
  seconds === null ? 'none' : <Lag seconds={seconds} late={lateAfter.outbox} before="oldest" />

function Lag({ seconds, late, before }: { seconds: number; late: number; before?: string }) {
  const text = before === undefined ? age(seconds) : `${before} ${age(seconds)}`
  return seconds <= late ? text : <Badge tone="bad">{text}</Badge>
}
