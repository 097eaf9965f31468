import { SimpleGrid } from '@mantine/core'
import type { Usage } from '../../api/operations.gen.ts'
import { BarChart, type ChartMark } from '../../components/bar-chart.tsx'
import { percent } from '../../components/numbers.ts'
import type { Tone } from '../../components/tone.ts'

type Hour = Usage['hours'][number]
export type CountedKind = Exclude<keyof Hour, 'starts_at'>

/** Only days have the number of accepted messages. */
export interface Period extends Record<CountedKind, number> {
  /** A day in UTC, 2026-01-31, or when an hour begins, in RFC 3339. */
  name: string
  accepted?: number
}

/** Oldest first. */
export const hoursOf = (hours: Hour[]): Period[] =>
  hours.map(({ starts_at, ...counts }) => ({ name: starts_at, ...counts })).toReversed()

/** Above these rates, large mailbox providers start rejecting a sender's mail. */
const thresholds = {
  bounced: { warn: 0.02, bad: 0.05 },
  complained: { warn: 0.001, bad: 0.003 },
}

export const toneOfRate = (kind: keyof typeof thresholds, rate: number): Tone | undefined =>
  rate >= thresholds[kind].bad ? 'bad' : rate >= thresholds[kind].warn ? 'warn' : undefined

/** Rates have their own axes: beside the volume, bounces and complaints would be invisible. */
export function MailCharts({
  unit,
  periods,
  marks,
}: {
  unit: 'Day' | 'Hour'
  periods: Period[]
  marks?: { label: string; on: ChartMark[] }
}) {
  const names = periods.map(({ name }) => name)
  const counts = (field: CountedKind | 'accepted') => periods.map((period) => period[field] ?? 0)
  const rates = (field: CountedKind) =>
    periods.map((period) => (period.sent === 0 ? 0 : period[field] / period.sent))
  const rateText = (rate: number) => percent(rate, 1)
  const common = { unit, names, ...(marks && { marks }) }
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
