import { Alert, Group, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import type { PublicIntervention } from '../../api/operations.gen.ts'
import { ExactAndRelativeTime } from '../../components/relative-time.tsx'
import { kinds } from './kinds.ts'

const colours = { bad: 'red', warn: 'yellow', calm: 'gray', good: 'green' }

/** An intervention in force, as the members of the project see it. */
export function NoticeAlert({
  notice,
  actions,
  children,
}: {
  notice: PublicIntervention
  actions?: ReactNode
  /** Such as the appeal. */
  children?: ReactNode
}) {
  const { kind, public_note, created_at, expires_at } = notice
  const { tone, title, effect } = kinds[kind]
  return (
    <Alert color={colours[tone]} title={title(notice)}>
      <Group justify="space-between" align="flex-start" gap="sm">
        <Stack gap={4} flex="1 1 300px" style={{ overflowWrap: 'anywhere' }} c="var(--mantine-color-text)">
          <Text size="sm">{effect}</Text>
          {public_note !== null && <Text size="sm">{public_note}</Text>}
          <Text size="sm" c="dimmed">
            Since <ExactAndRelativeTime at={created_at} />
            {expires_at !== null && (
              <>
                , until <ExactAndRelativeTime at={expires_at} />
              </>
            )}
            .
          </Text>
          {children}
        </Stack>
        {actions}
      </Group>
    </Alert>
  )
}
