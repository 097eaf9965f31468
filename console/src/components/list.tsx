import { Button, Group, Table, Text } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { Fragment, type KeyboardEvent, type ReactNode, useRef } from 'react'
import type { Page } from '../api/queries.ts'
import classes from './list.module.css'
import { Asked } from './states.tsx'

/** Told from the others by its id, or, where it has none, by the address that it is about. */
type Row = { id: number | string } | { address: string }

export interface Column<T> {
  title: string
  /** In the first column, a link to the row's page: it is what the keyboard moves along. */
  cell: (row: T) => ReactNode
  isNumber?: boolean
  /** Left out where the window is narrow. */
  isExtra?: boolean
}

/**
 * A page of a list. Arrow keys, or j and k, move from row to row, Enter opens. The cursor of the page is the caller's,
 * who keeps it in the address.
 */
export function List<T extends Row>({
  label,
  query,
  columns,
  below,
  empty,
  cursor,
  setCursor,
}: {
  label: string
  query: UseQueryResult<Page<T>>
  columns: Column<T>[]
  /** What a row shows below itself while it is open. */
  below?: (row: T) => ReactNode
  empty: ReactNode
  cursor: string | undefined
  setCursor: (cursor: string | undefined) => void
}) {
  const body = useRef<HTMLTableSectionElement>(null)
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key]
    if (!step || event.metaKey || event.ctrlKey || event.altKey) return
    // Keys pressed in a row's menu come here, too, though it stands elsewhere in the page.
    if (!body.current?.contains(event.target as Node)) return
    const links = [
      ...(body.current?.querySelectorAll<HTMLElement>(
        'tr:not([data-below]) > td:first-child :is(a, button)',
      ) ?? []),
    ]
    const next = links[links.indexOf(document.activeElement as HTMLElement) + step]
    if (next) {
      event.preventDefault()
      next.focus()
    }
  }
  return (
    <Asked query={query} rows={8}>
      {({ data, next_cursor: next }) => (
        <div
          aria-busy={query.isFetching}
          className={classes.list}
          data-stale={query.isPlaceholderData || undefined}
        >
          {data.length > 0 ? (
            <Table.ScrollContainer minWidth={0}>
              <Table aria-label={label} highlightOnHover verticalSpacing={7}>
                <Table.Thead>
                  <Table.Tr>
                    {columns.map(({ title, ...kind }) => (
                      <Table.Th key={title} scope="col" className={classOf(kind)}>
                        {title}
                      </Table.Th>
                    ))}
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody ref={body} onKeyDown={move}>
                  {data.map((row) => (
                    <Fragment key={'id' in row ? row.id : row.address}>
                      <Table.Tr>
                        {columns.map(({ title, cell, ...kind }) => (
                          <Table.Td key={title} className={classOf(kind)}>
                            {cell(row)}
                          </Table.Td>
                        ))}
                      </Table.Tr>
                      <Below width={columns.length}>{below?.(row)}</Below>
                    </Fragment>
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
          ) : next === null ? (
            empty
          ) : (
            <Text c="dimmed" ta="center" py="xl">
              Nothing yet among the rows looked at. There are more.
            </Text>
          )}
          <Group justify="flex-end" mt="sm">
            {cursor !== undefined && (
              <Button variant="default" size="compact-md" onClick={() => setCursor(undefined)}>
                First page
              </Button>
            )}
            {next !== null && (
              <Button variant="default" size="compact-md" onClick={() => setCursor(next)}>
                {data.length > 0 ? 'Next page' : 'Keep looking'}
              </Button>
            )}
          </Group>
        </div>
      )}
    </Asked>
  )
}

function Below({ width, children }: { width: number; children: ReactNode }) {
  if (!children) return null
  return (
    <Table.Tr data-below>
      <Table.Td colSpan={width}>{children}</Table.Td>
    </Table.Tr>
  )
}

const classOf = ({ isNumber, isExtra }: Pick<Column<unknown>, 'isNumber' | 'isExtra'>): string =>
  [isNumber && classes.number, isExtra && classes.extra].filter(Boolean).join(' ')
