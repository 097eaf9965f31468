import { TextInput, type TextInputProps } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { useLayoutEffect, useRef, useState } from 'react'
import { isDialogOpen } from './is-dialog-open.ts'

/** What a list is searched for, kept in the address by the caller. It has the focus from the start; a slash leads back. */
export function SearchField({
  value,
  onChange,
  ...rest
}: { value: string | undefined; onChange: (text: string | undefined) => void } & Omit<
  TextInputProps,
  'value' | 'onChange'
>) {
  const field = useRef<HTMLInputElement>(null)
  // The address follows a moment later than the keys: what was typed counts for as long as somebody types.
  const [typed, setTyped] = useState<string>()
  // A page arrives a moment after it was asked for. By then the palette may be open again.
  useLayoutEffect(() => {
    if (!isDialogOpen()) field.current?.focus()
  }, [])
  useHotkeys([['/', () => field.current?.focus()]])
  return (
    <TextInput
      label="Search"
      ref={field}
      value={typed ?? value ?? ''}
      onChange={(event) => {
        setTyped(event.currentTarget.value)
        onChange(event.currentTarget.value || undefined)
      }}
      onBlur={() => setTyped(undefined)}
      maxLength={100}
      {...rest}
    />
  )
}
