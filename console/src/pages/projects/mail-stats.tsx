import { Group, SegmentedControl, SimpleGrid, Stack, UnstyledButton } from '@mantine/core'
import { useState } from 'react'
import type { Project, Usage } from '../../api/operations.gen.ts'
import { toneOfScore } from '../../components/badge.tsx'
import { BarChart } from '../../components/bar-chart.tsx'
import { number, percent } from '../../components/numbers.ts'
import { StatTile, StatTiles } from '../../components/stat-tiles.tsx'
import { useFiringMarks } from '../policies/firing-marks.ts'
import classes from './mail-stats.module.css'
import { ScoreParts } from './score-parts.tsx'

type Count = Exclude<keyof Usage['hours'][number], 'starts_at'>

/** A day or an hour. Only days have the number of accepted messages. */
interface Period extends Record<Count, number> {
  name: string
  accepted?: number
}

const ranges = [
  { value: '1', label: '24 hours' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
]

/** Oldest first. */
const periodsOf = ({ days, hours }: Usage, range: string): Period[] =>
  range === '1'
    ? hours
        .map(({ starts_at, ...counts }) => ({ name: starts_at.slice(0, 16).replace('T', ' '), ...counts }))
        .toReversed()
    : days
        .slice(0, Number(range))
        .map(({ day, ...counts }) => ({ name: day, ...counts }))
        .toReversed()

/** Above these rates, large mailbox providers start rejecting a sender's mail. */
const thresholds = {
  bounced: { warn: 0.02, bad: 0.05 },
  complained: { warn: 0.001, bad: 0.003 },
}

/** The score, and the mail of the last days with its rates. */
export function MailStats({ project, usage }: { project: Project; usage: Usage }) {
  const [isExplained, setIsExplained] = useState(false)
  const [range, setRange] = useState('30')
  const rangeText = ranges.find(({ value }) => value === range)?.label
  const periods = periodsOf(usage, range)
  const sum = (field: Count) => periods.reduce((total, period) => total + period[field], 0)
  const sent = sum('sent')
  const toneOf = (kind: 'bounced' | 'complained') => {
    const rate = sent === 0 ? 0 : sum(kind) / sent
    return rate >= thresholds[kind].bad ? 'bad' : rate >= thresholds[kind].warn ? 'warn' : undefined
  }
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
      <Charts projectId={project.id} unit={range === '1' ? 'Hour' : 'Day'} periods={periods} />
    </Stack>
  )
}

/** Rates have their own axes: beside the volume, bounces and complaints would be invisible. */
function Charts({
  projectId,
  unit,
  periods,
}: {
  projectId: number
  unit: 'Day' | 'Hour'
  periods: Period[]
}) {
  const marks = useFiringMarks(projectId)
  const names = periods.map(({ name }) => name)
  const counts = (field: Count | 'accepted') => periods.map((period) => period[field] ?? 0)
  const rates = (field: Count) =>
    periods.map((period) => (period.sent === 0 ? 0 : period[field] / period.sent))
  const rateText = (rate: number) => percent(rate, 1)
  const common = { unit, names, marks }
  return (
    <>
      <BarChart
        {...common}
        title={unit === 'Hour' ? 'Recipients per hour' : 'Messages per day'}
        series={[
          unit === 'Hour'
            ? { label: 'Sent', colour: '--postern-accepted', values: counts('sent') }
            : { label: 'Accepted', colour: '--postern-accepted', values: counts('accepted') },
          { label: 'Delivered', colour: '--postern-delivered', values: counts('delivered') },
        ]}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        <BarChart
          {...common}
          title="Bounce rate"
          series={[{ label: 'Bounced', colour: '--postern-bounced', values: rates('bounced') }]}
          format={rateText}
          height={120}
          threshold={thresholds.bounced.bad}
        />
        <BarChart
          {...common}
          title="Complaint rate"
          series={[{ label: 'Complained', colour: '--postern-complained', values: rates('complained') }]}
          format={rateText}
          height={120}
          threshold={thresholds.complained.bad}
        />
      </SimpleGrid>
    </>
  )
}
