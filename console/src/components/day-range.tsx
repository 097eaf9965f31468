import { Select, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useZone } from './use-zone.tsx'
import { addDays, dayOf, zoneName } from './zone.ts'

interface Days {
  from: string | undefined
  to: string | undefined
}

/** The days before today that a choice includes. */
const choices = { '0': 'Today', '6': 'Last 7 days', '29': 'Last 30 days' }
const custom = 'custom'

/** A filter by time: a period until now, or the first and the last day of a range, in the zone of the times. */
export function DayRange({ value: { from, to }, onChange }: { value: Days; onChange: (days: Days) => void }) {
  const zone = useZone()
  const [isCustom, setIsCustom] = useState(false)
  const daysAgo = (days: string) => addDays(dayOf(Date.now(), zone), -Number(days))
  const known = Object.keys(choices).find((days) => to === undefined && from === daysAgo(days))
  const isAny = from === undefined && to === undefined
  const areShown = isCustom || (!isAny && known === undefined)
  const nameOf = (day: string | undefined) => zoneName(day ?? Date.now(), zone)
  return (
    <>
      <Select
        label="Time"
        value={areShown ? custom : (known ?? null)}
        onChange={(chosen) => {
          setIsCustom(chosen === custom)
          if (chosen !== custom)
            onChange({ from: chosen === null ? undefined : daysAgo(chosen), to: undefined })
        }}
        data={[
          ...Object.entries(choices).map(([value, label]) => ({ value, label })),
          { value: custom, label: 'Custom' },
        ]}
        placeholder="Any"
        clearable
        w={140}
      />
      {areShown && (
        <>
          <DayField
            label={`From (${nameOf(from)})`}
            value={from}
            onChange={(day) => onChange({ from: day, to })}
          />
          <DayField label={`To (${nameOf(to)})`} value={to} onChange={(day) => onChange({ from, to: day })} />
        </>
      )}
    </>
  )
}

function DayField({
  label,
  value,
  onChange,
}: {
  label: string
  value: string | undefined
  onChange: (day: string | undefined) => void
}) {
  return (
    <TextInput
      type="date"
      label={label}
      value={value ?? ''}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
      w={155}
    />
  )
}
