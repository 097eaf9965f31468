import { Group, Stack, UnstyledButton } from '@mantine/core'
import { useState } from 'react'
import type { Project, Usage } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'
import { toneOfScore } from '../../../components/badge.tsx'
import { number, percent } from '../../../components/numbers.ts'
import { StatTile, StatTiles } from '../../../components/stat-tiles.tsx'
import { type CountedKind, MailCharts, toneOfRate } from '../../../resources/usage/mail-charts.tsx'
import { MailboxProviders } from '../../../resources/usage/mailbox-providers.tsx'
import { periodsOf, type Range, RangeControl, ranges } from '../../../resources/usage/ranges.tsx'
import { useFiringMarks } from '../policies/firing-marks.ts'
import classes from './mail-stats.module.css'
import { ScoreParts } from './score-parts.tsx'

function useMailboxProviders(projectId: number, days: number) {
  // The query must not change with every rendering.
  const [now] = useState(Date.now)
  const from = new Date(now - days * 86_400_000).toISOString()
  return useAnswer('mailbox-providers.show', { path: { project_id: projectId }, query: { from } })
}

/** The score, and the mail of the last days with its rates. */
export function MailStats({ project, usage }: { project: Project; usage: Usage }) {
  const [isExplained, setIsExplained] = useState(false)
  const [range, setRange] = useState<Range>('30')
  const marks = useFiringMarks(project.id)
  const providers = useMailboxProviders(project.id, Number(range))
  const rangeText = ranges[range]
  const periods = periodsOf(usage, range)
  const sum = (field: CountedKind) => periods.reduce((total, period) => total + period[field], 0)
  const sent = sum('sent')
  const toneOf = (kind: 'bounced' | 'complained') => toneOfRate(kind, sent === 0 ? 0 : sum(kind) / sent)
  const noteOf = (kind: 'bounced' | 'complained' | 'failed') =>
    `${number(sum(kind))} in ${rangeText} · ${number(project[kind])} total`
  return (
    <Stack gap="sm">
      <StatTiles>
        <StatTile
          label="Score"
          value={project.reputation_score}
          tone={toneOfScore(project.reputation_score)}
          note={
            <>
              last 7 days ·{' '}
              <UnstyledButton
                className={classes.why}
                aria-expanded={isExplained}
                aria-controls={isExplained ? 'score-parts' : undefined}
                onClick={() => setIsExplained(!isExplained)}
              >
                Why {project.reputation_score}?
              </UnstyledButton>
            </>
          }
        />
        <StatTile
          label="Bounced"
          value={percent(sum('bounced'), sent)}
          tone={toneOf('bounced')}
          note={noteOf('bounced')}
        />
        <StatTile
          label="Complained"
          value={percent(sum('complained'), sent)}
          tone={toneOf('complained')}
          note={noteOf('complained')}
        />
        <StatTile label="Failed" value={percent(sum('failed'), sent)} note={noteOf('failed')} />
        <StatTile label="Sent" value={number(sent)} note={`in ${rangeText}`} />
      </StatTiles>
      {isExplained && <ScoreParts projectId={project.id} />}
      <Group justify="flex-end">
        <RangeControl range={range} setRange={setRange} />
      </Group>
      <MailCharts unit={range === '1' ? 'Hour' : 'Day'} periods={periods} marks={marks} />
      <MailboxProviders figures={providers.data?.mailbox_providers ?? []} range={`last ${rangeText}`} />
    </Stack>
  )
}
