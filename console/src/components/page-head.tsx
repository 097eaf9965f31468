import { Group, Stack, Text, Title } from '@mantine/core'
import { type ReactNode, useEffect } from 'react'

interface HeadProps {
  title: string
  /** Breadcrumb. */
  above?: ReactNode
  /** Badges: locked, inactive. */
  beside?: ReactNode
  /** A sentence below the title. */
  below?: ReactNode
  /** Buttons. */
  children?: ReactNode
}

/** The title of a page and of the window, with the page's actions. */
export const PageHead = (props: HeadProps) => <Head order={1} {...props} />

/** The same for a section of a page, such as a tab. */
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

/** The titles on the page, by heading level; 3 is a card that covers the page, such as the form to sign in. */
const titles = new Map<number, string>()

/** The window title names the section first and then its page, because browser tabs show only the beginning. */
export function useWindowTitle(order: 1 | 2 | 3, title: string): void {
  useEffect(() => {
    titles.set(order, title)
    nameWindow()
    return () => {
      titles.delete(order)
      nameWindow()
    }
  }, [order, title])
}

/** The name of the installation. */
let product = 'Postern'

export function nameProduct(name: string): void {
  product = name
  nameWindow()
}

function nameWindow(): void {
  document.title = [titles.get(3), titles.get(2), titles.get(1), product].filter(Boolean).join(' · ')
}
