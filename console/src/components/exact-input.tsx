import { TextInput, type TextInputProps } from '@mantine/core'

/**
 * A search field for a full value. Part of a value finds nothing, so the search runs on Enter or when the field loses
 * focus.
 */
export function ExactInput({
  value,
  onCommit,
  ...props
}: { value: string | undefined; onCommit: (value: string | undefined) => void } & Omit<
  TextInputProps,
  'value' | 'onChange'
>) {
  const commit = (text: string) => {
    const committed = text.trim() || undefined
    if (committed !== value) onCommit(committed)
  }
  return (
    <TextInput
      // A new value in the URL resets the field.
      key={value}
      defaultValue={value ?? ''}
      onBlur={(event) => commit(event.currentTarget.value)}
      onKeyDown={(event) => event.key === 'Enter' && commit(event.currentTarget.value)}
      {...props}
    />
  )
}
