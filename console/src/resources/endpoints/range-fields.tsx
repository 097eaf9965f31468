import { Checkbox, SimpleGrid } from '@mantine/core'
import { DateTimeField } from '../../components/date-time-field.tsx'
import { secondOf } from '../../components/zone.ts'

export interface RangeForm {
  from: string
  to: string
  only_undelivered: boolean
}

const dayMs = 24 * 3600_000

/** The last day. */
export function lastDay(): RangeForm {
  const now = Date.now()
  return { from: secondOf(now - dayMs), to: secondOf(now), only_undelivered: true }
}

/** The time range of a replay. */
export function RangeFields({ form, set }: { form: RangeForm; set: (part: Partial<RangeForm>) => void }) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <DateTimeField
          label="From"
          value={form.from}
          onChange={(from) => set({ from })}
          required
          data-autofocus
        />
        <DateTimeField label="To" value={form.to} onChange={(to) => set({ to })} required />
      </SimpleGrid>
      <Checkbox
        label="Undelivered only"
        description="If not selected, events that were already delivered are also replayed"
        checked={form.only_undelivered}
        onChange={(event) => set({ only_undelivered: event.currentTarget.checked })}
      />
    </>
  )
}
