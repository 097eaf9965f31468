import { TextInput } from '@mantine/core'
import { useZone } from './use-zone.tsx'
import { exactTime, ofField, otherZone, toField, zoneName } from './zone.ts'

/** A time to the second, in the zone in which times are shown. An empty value is ''. */
export function DateTimeField({
  label,
  description,
  value,
  onChange,
  required = false,
  ...props
}: {
  label: string
  description?: string
  /** RFC 3339 in UTC. */
  value: string
  onChange: (at: string) => void
  required?: boolean
  'data-autofocus'?: boolean
}) {
  const zone = useZone()
  return (
    <TextInput
      type="datetime-local"
      label={`${label} (${zoneName(value || Date.now(), zone)})`}
      description={description}
      title={value === '' ? undefined : exactTime(value, otherZone(zone))}
      step={1}
      max="9999-12-31T23:59:59"
      value={toField(value, zone)}
      onChange={(event) => onChange(ofField(event.currentTarget.value, zone))}
      required={required}
      {...props}
    />
  )
}
