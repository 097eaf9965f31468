import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'

/** Shown when another edit was saved first (412). */
export function Conflict({
  by,
  children,
  resume,
  close,
}: {
  /** "Another administrator". */
  by: string
  /** The fields that were changed in the meantime. */
  children?: ReactNode
  resume: () => void
  close: () => void
}) {
  return (
    <Stack>
      <Alert color="yellow" title="This was changed after you opened it" role="alert">
        <Text size="sm">
          {by} changed it, or one of your earlier attempts succeeded but the response was lost. If you
          continue, your edits are kept, and all other fields take their current values.
        </Text>
      </Alert>
      {children}
      <Group justify="flex-end">
        <Button variant="default" onClick={close}>
          Cancel
        </Button>
        <Button onClick={resume} data-autofocus>
          Continue with my edits
        </Button>
      </Group>
    </Stack>
  )
}
