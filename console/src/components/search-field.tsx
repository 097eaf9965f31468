import { Kbd, TextInput, type TextInputProps } from '@mantine/core'
import { useState } from 'react'
import classes from './search-field.module.css'

/** The search field of a list; the caller keeps its value in the URL. */
export function SearchField({
  value,
  onChange,
  ...rest
}: { value: string | undefined; onChange: (text: string | undefined) => void } & Omit<
  TextInputProps,
  'value' | 'onChange'
>) {
  // The URL is updated with a delay, so the typed text takes precedence while the user is typing.
  const [typed, setTyped] = useState<string>()
  return (
    <TextInput
      label="Search"
      value={typed ?? value ?? ''}
      onChange={(event) => {
        setTyped(event.currentTarget.value)
        onChange(event.currentTarget.value || undefined)
      }}
      onBlur={() => setTyped(undefined)}
      maxLength={100}
      rightSection={<Kbd size="xs">/</Kbd>}
      rightSectionProps={{ className: classes.key, 'aria-hidden': true }}
      {...rest}
    />
  )
}
