import { TextInput, type TextInputProps } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { useLayoutEffect, useRef, useState } from 'react'
import { isDialogOpen } from './is-dialog-open.ts'

/**
 * The search field of a list; the caller keeps its value in the URL. It is focused on load, and `/` focuses it
 * again.
 */
export function SearchField({
  value,
  onChange,
  ...rest
}: { value: string | undefined; onChange: (text: string | undefined) => void } & Omit<
  TextInputProps,
  'value' | 'onChange'
>) {
  const field = useRef<HTMLInputElement>(null)
  // The URL is updated with a delay, so the typed text takes precedence while the user is typing.
  const [typed, setTyped] = useState<string>()
  // A page renders a moment after navigation, and the palette may already be open again.
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
