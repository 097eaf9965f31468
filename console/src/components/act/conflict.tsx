import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { Changes, differences } from '../changes.tsx'

/** Fields that change automatically or with every edit. */
const ignoredFields = [
  'updated_at',
  'last_success_at',
  'consecutive_failures',
  'last_used_at',
  'last_checked_at',
  'last_check_error',
]

/** Shown when another edit was saved first (412). */
export function Conflict({
  before,
  now,
  resume,
  close,
}: {
  before: unknown
  now: unknown
  resume: () => void
  close: () => void
}) {
  return (
    <Stack>
      <Alert color="yellow" title="This was changed after you opened it" role="alert">
        <Text size="sm">
          Another administrator changed it, or one of your earlier attempts succeeded but the response was
          lost. If you continue, your edits are kept, and all other fields take their current values.
        </Text>
      </Alert>
      <Changes
        changes={differences('resource', null, before as object, now as object).filter(
          ({ field }) => !ignoredFields.includes(field),
        )}
        before="When you opened it"
        after="Now"
      />
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
