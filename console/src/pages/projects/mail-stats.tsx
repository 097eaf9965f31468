import { Group, SegmentedControl, SimpleGrid, Stack, UnstyledButton } from '@mantine/core'
import { useState } from 'react'
import type { Project, Usage } from '../../api/operations.gen.ts'
import { toneOfScore } from '../../components/badge.tsx'
import { DayChart } from '../../components/day-chart.tsx'
import { number, percent } from '../../components/numbers.ts'
import { StatTile, StatTiles } from '../../components/stat-tiles.tsx'
import classes from './mail-stats.module.css'
import { ScoreParts } from './score-parts.tsx'

type Day = Usage['days'][number]
type Count = Exclude<keyof Day, 'day'>

/** Above these rates, large mailbox providers start rejecting a sender's mail. */
const thresholds = {
  bounced: { warn: 0.02, bad: 0.05 },
  complained: { warn: 0.001, bad: 0.003 },
}

/** The score, and the mail of the last days with its rates. */
export function MailStats({ project, usage }: { project: Project; usage: Usage }) {
  const [isExplained, setIsExplained] = useState(false)
  const [range, setRange] = useState('30')
  const days = usage.days.slice(0, Number(range)).toReversed()
  const sum = (field: Count) => days.reduce((total, day) => total + day[field], 0)
  const sent = sum('sent')
  const toneOf = (kind: 'bounced' | 'complained') => {
    const rate = sent === 0 ? 0 : sum(kind) / sent
    return rate >= thresholds[kind].bad ? 'bad' : rate >= thresholds[kind].warn ? 'warn' : undefined
  }
  const noteOf = (kind: 'bounced' | 'complained' | 'failed') =>
    `${number(sum(kind))} in ${range} days · ${number(project[kind])} total`
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
        <StatTile label="Sent" value={number(sent)} note={`in ${range} days`} />
      </StatTiles>
      {isExplained && <ScoreParts projectId={project.id} />}
      <Group justify="flex-end">
        <SegmentedControl
          aria-label="Days shown"
          size="xs"
          value={range}
          onChange={setRange}
          data={[
            { value: '7', label: '7 days' },
            { value: '30', label: '30 days' },
          ]}
        />
      </Group>
      <Charts days={days} />
    </Stack>
  )
}

/** Rates have their own axes: beside the volume, bounces and complaints would be invisible. */
function Charts({ days }: { days: Day[] }) {
  const names = days.map(({ day }) => day)
  const counts = (field: Count) => days.map((day) => day[field])
  const rates = (field: Count) => days.map((day) => (day.sent === 0 ? 0 : day[field] / day.sent))
  const rateText = (rate: number) => percent(rate, 1)
  return (
    <>
      <DayChart
        title="Messages per day"
        days={names}
        series={[
          { label: 'Accepted', colour: '--postern-accepted', values: counts('accepted') },
          { label: 'Delivered', colour: '--postern-delivered', values: counts('delivered') },
        ]}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        <DayChart
          title="Bounce rate"
          days={names}
          series={[{ label: 'Bounced', colour: '--postern-bounced', values: rates('bounced') }]}
          format={rateText}
          height={120}
          threshold={thresholds.bounced.bad}
        />
        <DayChart
          title="Complaint rate"
          days={names}
          series={[{ label: 'Complained', colour: '--postern-complained', values: rates('complained') }]}
          format={rateText}
          height={120}
          threshold={thresholds.complained.bad}
        />
      </SimpleGrid>
    </>
  )
}
