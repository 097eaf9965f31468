import { SegmentedControl } from '@mantine/core'
import type { Usage } from '../../api/operations.gen.ts'
import { hoursOf, type Period } from './mail-charts.tsx'

/** The last 24 hours, or a number of days. */
export const ranges = { 1: '24 hours', 7: '7 days', 30: '30 days' }

export type Range = `${keyof typeof ranges}`

/** Oldest first. */
export const periodsOf = ({ days, hours }: Usage, range: Range): Period[] =>
  range === '1'
    ? hoursOf(hours)
    : days
        .slice(0, Number(range))
        .map(({ day, ...counts }) => ({ name: day, ...counts }))
        .toReversed()

export function RangeControl({ range, setRange }: { range: Range; setRange: (range: Range) => void }) {
  return (
    <SegmentedControl
      aria-label="Time range"
      size="xs"
      value={range}
      onChange={setRange}
      transitionDuration={0}
      data={Object.entries(ranges).map(([value, label]) => ({ value: value as Range, label }))}
    />
  )
}
