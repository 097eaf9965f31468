import { Alert, Button, Checkbox, Group, Stack } from '@mantine/core'
import { useState } from 'react'
import { Copy } from '../copy.tsx'
import classes from './act.module.css'

/** Shown this once. When the dialog closes, no copy of it is left in the page. */
export function TellSecret({ secret, close }: { secret: string; close: () => void }) {
  const [isKept, setIsKept] = useState(false)
  return (
    <Stack>
      <Alert color="yellow" title="This is shown once">
        Copy it now and put it where it belongs. It cannot be shown again; if it gets lost, rotate it.
      </Alert>
      <code className={classes.secret}>{secret}</code>
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
