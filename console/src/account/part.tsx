import { Group, Text, Title } from '@mantine/core'
import { type ReactNode, useId } from 'react'

/** A section of the account page. */
export function Part({
  title,
  beside,
  about,
  actions,
  children,
}: {
  title: string
  /** A badge. */
  beside?: ReactNode
  about?: ReactNode
  actions?: ReactNode
  children?: ReactNode
}) {
  const id = useId()
  return (
    <section aria-labelledby={id}>
      <Group justify="space-between" align="flex-start" mb="sm" gap="xs">
        <div>
          <Group gap="xs">
            <Title order={2} id={id}>
              {title}
            </Title>
            {beside}
          </Group>
          {about && (
            <Text size="sm" c="dimmed" maw={460}>
              {about}
            </Text>
          )}
        </div>
        <Group gap="xs">{actions}</Group>
      </Group>
      {children}
    </section>
  )
}
