import { Group, Stack, Text, Title } from '@mantine/core'
import { type ReactNode, useEffect } from 'react'

interface HeadProps {
  title: string
  /** Where this belongs. */
  above?: ReactNode
  /** What must be seen at once: locked, inactive. */
  beside?: ReactNode
  /** A sentence about it. */
  below?: ReactNode
  /** Buttons. */
  children?: ReactNode
}

/** The title of a page, of the window, and what can be done here. */
export const PageHead = (props: HeadProps) => <Head order={1} {...props} />

/** The same for a part of a page, such as what a tab shows. */
export const PartHead = (props: HeadProps) => <Head order={2} {...props} />

function Head({ order, title, above, beside, below, children }: HeadProps & { order: 1 | 2 }) {
  useWindowTitle(order, title)
  return (
    <Group justify="space-between" align="flex-end" mb={order === 1 ? 'lg' : 'md'}>
      <Stack gap={2}>
        <Aside>{above}</Aside>
        <Group gap="sm">
          <Title order={order} style={{ overflowWrap: 'anywhere' }}>
            {title}
          </Title>
          {beside}
        </Group>
        <Aside>{below}</Aside>
      </Stack>
      <Group gap="xs">{children}</Group>
    </Group>
  )
}

function Aside({ children }: { children: ReactNode }) {
  if (!children) return null
  return (
    <Text size="sm" c="dimmed" component="div">
      {children}
    </Text>
  )
}

/** On the page now, by order. */
const titles = new Map<number, string>()

/** The window is called by the part, then by the page that it is of: a row of browser tabs shows only the beginning. */
function useWindowTitle(order: 1 | 2, title: string): void {
  useEffect(() => {
    titles.set(order, title)
    nameWindow()
    return () => {
      titles.delete(order)
      nameWindow()
    }
  }, [order, title])
}

function nameWindow(): void {
  document.title = [titles.get(2), titles.get(1), 'Postern'].filter(Boolean).join(' · ')
}
