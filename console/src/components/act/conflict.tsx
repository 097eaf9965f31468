import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { Changes, differences } from '../changes.tsx'

/** What moves by itself, or with every change, is nobody's wish. */
const moving = [
  'updated_at',
  'last_success_at',
  'consecutive_failures',
  'last_used_at',
  'last_checked_at',
  'last_check_error',
]

/** Somebody else was faster. */
export function Conflict({
  before,
  now,
  goOn,
  close,
}: {
  before: unknown
  now: unknown
  goOn: () => void
  close: () => void
}) {
  return (
    <Stack>
      <Alert color="yellow" title="This was changed meanwhile" role="alert">
        <Text size="sm">
          Somebody changed it after you opened it; or you did, if a first try of yours got no answer. Below is
          what changed. Go on, and the fields that you edited keep what you wrote; all others are as they are
          now.
        </Text>
      </Alert>
      <Changes
        changes={differences('resource', null, before as object, now as object).filter(
          ({ field }) => !moving.includes(field),
        )}
        before="When you opened it"
        after="Now"
      />
      <Group justify="flex-end">
        <Button variant="default" onClick={close}>
          Cancel
        </Button>
        <Button onClick={goOn} data-autofocus>
          Go on from there
        </Button>
      </Group>
    </Stack>
  )
}
