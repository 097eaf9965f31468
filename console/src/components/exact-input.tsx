import { TextInput, type TextInputProps } from '@mantine/core'

/**
 * A field of a search that needs the whole of something. Half of it finds nothing, so nothing is asked before Enter, or
 * before the field is left.
 */
export function ExactInput({
  value,
  onSettle,
  ...props
}: { value: string | undefined; onSettle: (value: string | undefined) => void } & Omit<
  TextInputProps,
  'value' | 'onChange'
>) {
  const settle = (text: string) => {
    const settled = text.trim() || undefined
    if (settled !== value) onSettle(settled)
  }
  return (
    <TextInput
      // Another value in the address is another field.
      key={value}
      defaultValue={value ?? ''}
      onBlur={(event) => settle(event.currentTarget.value)}
      onKeyDown={(event) => event.key === 'Enter' && settle(event.currentTarget.value)}
      {...props}
    />
  )
}
