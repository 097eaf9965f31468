import { Button, Group } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { type ReactNode, useState } from 'react'

/** The filters of a list. In a narrow window they are hidden behind a button, so that the list stays in view. */
export function FilterBar({
  search,
  count,
  children,
}: {
  /** Always shown: the search field. */
  search?: ReactNode
  /** How many filters are set. */
  count: number
  children: ReactNode
}) {
  const [isOpen, setIsOpen] = useState(false)
  const isNarrow = useMediaQuery('(max-width: 600px)')
  return (
    <Group align="flex-end" mb="md" gap="sm" role="search">
      {search}
      {isNarrow && (
        <Button variant="default" onClick={() => setIsOpen(!isOpen)} aria-expanded={isOpen}>
          {count > 0 ? `Filters (${count})` : 'Filters'}
        </Button>
      )}
      {(isOpen || !isNarrow) && children}
    </Group>
  )
}

/** How many filters are set. */
export const countOf = (...filters: unknown[]): number =>
  filters.filter((value) => value !== undefined && value !== null).length
