import { Button, Group } from '@mantine/core'
import { DateTimeField } from './date-time-field.tsx'
import { secondOf } from './zone.ts'

const choices: [label: string, hours: number][] = [
  ['1 hour', 1],
  ['24 hours', 24],
  ['7 days', 168],
]

/** When something ends: a period from now, an exact time, or never (''). */
export function ExpiryField({
  label,
  description,
  value,
  onChange,
}: {
  label: string
  description: string
  /** RFC 3339 in UTC. */
  value: string
  onChange: (at: string) => void
}) {
  const after = (hours: number) => secondOf(Date.now() + hours * 3_600_000)
  return (
    <div>
      <DateTimeField label={label} description={description} value={value} onChange={onChange} />
      <Group gap={6} mt={6} role="group" aria-label={`${label}: quick choices`}>
        {choices.map(([text, hours]) => (
          <Button key={text} size="compact-xs" variant="default" onClick={() => onChange(after(hours))}>
            {text}
          </Button>
        ))}
        <Button size="compact-xs" variant="default" onClick={() => onChange('')}>
          No expiry
        </Button>
      </Group>
    </div>
  )
}
