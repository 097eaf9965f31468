import { Group, SegmentedControl, Stack, UnstyledButton } from '@mantine/core'
import { useState } from 'react'
import type { Project, Usage } from '../../api/operations.gen.ts'
import { toneOfScore } from '../../components/badge.tsx'
import {
  type CountedKind,
  hoursOf,
  MailCharts,
  type Period,
  toneOfRate,
} from '../../components/mail-charts.tsx'
import { number, percent } from '../../components/numbers.ts'
import { StatTile, StatTiles } from '../../components/stat-tiles.tsx'
import { useFiringMarks } from '../policies/firing-marks.ts'
import classes from './mail-stats.module.css'
import { ScoreParts } from './score-parts.tsx'

const ranges = [
  { value: '1', label: '24 hours' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
]

/** Oldest first. */
const periodsOf = ({ days, hours }: Usage, range: string): Period[] =>
  range === '1'
    ? hoursOf(hours)
    : days
        .slice(0, Number(range))
        .map(({ day, ...counts }) => ({ name: day, ...counts }))
        .toReversed()

/** The score, and the mail of the last days with its rates. */
export function MailStats({ project, usage }: { project: Project; usage: Usage }) {
  const [isExplained, setIsExplained] = useState(false)
  const [range, setRange] = useState('30')
  const marks = useFiringMarks(project.id)
  const rangeText = ranges.find(({ value }) => value === range)?.label
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
        <SegmentedControl
          aria-label="Time range"
          size="xs"
          value={range}
          onChange={setRange}
          transitionDuration={0}
          data={ranges}
        />
      </Group>
      <MailCharts unit={range === '1' ? 'Hour' : 'Day'} periods={periods} marks={marks} />
    </Stack>
  )
}
