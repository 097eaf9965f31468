import { Button, type ButtonProps } from '@mantine/core'
import { useState } from 'react'

/** Copies a text and says that it did. */
export function Copy({
  text,
  label = 'Copy',
  of,
  ...props
}: {
  text: string
  label?: string /** Names what is copied to who cannot see where the button stands. */
  of?: string
} & ButtonProps) {
  const [said, say] = useState<string>()
  const copy = async () => {
    // Where the page came without HTTPS there is no clipboard at all.
    const isCopied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )
    say(isCopied ? 'Copied' : 'Select and copy by hand')
    setTimeout(() => say(undefined), 2000)
  }
  return (
    <Button
      size="compact-sm"
      variant="default"
      onClick={() => void copy()}
      aria-label={of ? `${said ?? label} ${of}` : undefined}
      {...props}
    >
      {said ?? label}
    </Button>
  )
}
