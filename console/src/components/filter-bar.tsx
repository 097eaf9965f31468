import { Button, Group, Text } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { type ReactNode, useState } from 'react'
import classes from './filter-bar.module.css'

/** The filters of a list. In a narrow window they are hidden behind a button, so that the list stays in view. */
export function FilterBar({
  search,
  count = 0,
  beside,
  children,
}: {
  /** Always shown: the search field, or the only filter. */
  search?: ReactNode
  /** How many of the other filters are set. */
  count?: number
  /** What the list contains. */
  beside?: ReactNode
  children?: ReactNode
}) {
  const [isOpen, setIsOpen] = useState(false)
  const isNarrow = useMediaQuery('(max-width: 600px)')
  return (
    <Group align="flex-end" mb="md" gap="sm" role="search">
      {isNarrow && children ? (
        <Group align="flex-end" gap="sm" wrap="nowrap" className={classes.narrow ?? ''}>
          {search}
          <Button
            variant="default"
            onClick={() => setIsOpen(!isOpen)}
            aria-expanded={isOpen}
            style={{ flexShrink: 0 }}
          >
            {count > 0 ? `Filters (${count})` : 'Filters'}
          </Button>
        </Group>
      ) : (
        search
      )}
      {(isOpen || !isNarrow) && children}
      {beside && (
        <Text c="dimmed" size="sm" flex={1} miw={240} ta={isNarrow ? 'left' : 'right'}>
          {beside}
        </Text>
      )}
    </Group>
  )
}

/** How many filters are set. */
export const countOf = (...filters: unknown[]): number =>
  filters.filter((value) => value !== undefined && value !== null).length
