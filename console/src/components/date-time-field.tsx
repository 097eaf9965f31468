import { TextInput } from '@mantine/core'

/** A time in UTC, to the second. An empty value is ''. */
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
  return (
    <TextInput
      type="datetime-local"
      label={`${label} (UTC)`}
      description={description}
      step={1}
      max="9999-12-31T23:59:59"
      value={value.slice(0, 19)}
      onChange={(event) => onChange(inUtc(event.currentTarget.value))}
      required={required}
      {...props}
    />
  )
}

/** Browsers omit seconds that are zero. */
function inUtc(local: string): string {
  if (local === '') return ''
  return `${local.length === 16 ? `${local}:00` : local.slice(0, 19)}Z`
}
