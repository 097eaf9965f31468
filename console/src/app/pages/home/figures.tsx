import { Group, Stack, Title } from '@mantine/core'
import { useState } from 'react'
import type { CustomerProject, Usage } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'
import { toneOfScore } from '../../../components/badge.tsx'
import { number, percent } from '../../../components/numbers.ts'
import { StatTile, StatTiles } from '../../../components/stat-tiles.tsx'
import { type CountedKind, MailCharts, toneOfRate } from '../../../resources/usage/mail-charts.tsx'
import { MailboxProviders } from '../../../resources/usage/mailbox-providers.tsx'
import { periodsOf, type Range, RangeControl, ranges } from '../../../resources/usage/ranges.tsx'

function useMailboxProviders(projectId: number, days: number) {
  // The query must not change with every rendering.
  const [now] = useState(Date.now)
  const from = new Date(now - days * 86_400_000).toISOString()
  return useAnswer(
    'customer.mailbox-providers.show',
    { path: { project_id: projectId }, query: { from } },
    { pollMs: 60_000 },
  )
}

/** The mail of the last days with its rates, in all and by mailbox provider. */
export function Figures({
  project: { id, reputation_score },
  usage,
}: {
  project: CustomerProject
  usage: Usage
}) {
  const [range, setRange] = useState<Range>('7')
  const providers = useMailboxProviders(id, Number(range))
  const periods = periodsOf(usage, range)
  const sum = (field: CountedKind) => periods.reduce((total, period) => total + period[field], 0)
  const sent = sum('sent')
  const toneOf = (kind: 'bounced' | 'complained') => toneOfRate(kind, sent === 0 ? 0 : sum(kind) / sent)
  const tile = (label: string, kind: CountedKind, tone?: ReturnType<typeof toneOf>) => (
    <StatTile
      label={label}
      value={percent(sum(kind), sent)}
      tone={tone}
      note={`${number(sum(kind))} of ${number(sent)}`}
    />
  )
  return (
    <>
      <Stack gap="sm" component="section">
        <Group justify="space-between">
          <Title order={2}>Mail</Title>
          <RangeControl range={range} setRange={setRange} />
        </Group>
        <StatTiles>
          <StatTile label="Sent" value={number(sent)} note={`recipients in ${ranges[range]}`} />
          {tile('Delivered', 'delivered')}
          {tile('Bounced', 'bounced', toneOf('bounced'))}
          {tile('Complained', 'complained', toneOf('complained'))}
          {tile('Failed', 'failed')}
          <StatTile
            label="Reputation"
            value={reputation_score}
            tone={toneOfScore(reputation_score)}
            note="of 100, last 7 days"
          />
        </StatTiles>
        <MailCharts unit={range === '1' ? 'Hour' : 'Day'} periods={periods} />
      </Stack>
      {providers.data && (
        <MailboxProviders figures={providers.data.mailbox_providers} range={ranges[range]} />
      )}
    </>
  )
}
