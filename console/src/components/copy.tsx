import { Button, type ButtonProps } from '@mantine/core'
import { useState } from 'react'

/** Copies text and confirms that it was copied. */
export function Copy({
  text,
  label = 'Copy',
  of,
  ...props
}: {
  text: string
  label?: string /** For screen readers: names what is copied. */
  of?: string
} & ButtonProps) {
  const [status, setStatus] = useState<string>()
  const copy = async () => {
    // Without HTTPS, browsers have no clipboard API.
    const isCopied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )
    setStatus(isCopied ? 'Copied' : 'Copy failed: select the text')
    setTimeout(() => setStatus(undefined), 2000)
  }
  return (
    <Button
      size="compact-sm"
      variant="default"
      onClick={() => void copy()}
      aria-label={of ? `${status ?? label} ${of}` : undefined}
      {...props}
    >
      {status ?? label}
    </Button>
  )
}
