import { Alert, Button, Checkbox, Group, Stack } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { Copy } from './copy.tsx'
import classes from './reveal-secret.module.css'

/** Shown once. After the dialog closes, the page has no copy of the secret. */
export function RevealSecret({
  secret,
  children,
  close,
}: {
  secret: string
  /** How to use the secret. */
  children?: ReactNode
  close: () => void
}) {
  const [isKept, setIsKept] = useState(false)
  return (
    <Stack>
      <Alert color="yellow" title="This secret is shown only once">
        Copy it now and store it safely. If you lose it, rotate it.
      </Alert>
      <code className={classes.secret}>{secret}</code>
      {children}
      <Group justify="space-between">
        <Copy text={secret} label="Copy secret" data-autofocus />
        <Checkbox
          label="I have stored it"
          checked={isKept}
          onChange={(event) => setIsKept(event.currentTarget.checked)}
        />
        <Button disabled={!isKept} onClick={close}>
          Done
        </Button>
      </Group>
    </Stack>
  )
}

export function secretOf(answer: unknown): string | undefined {
  const { secret } = (answer ?? {}) as { secret?: unknown }
  return typeof secret === 'string' ? secret : undefined
}
