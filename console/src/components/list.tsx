import { Button, Group, Table, Text } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { Fragment, type KeyboardEvent, type ReactNode, useRef } from 'react'
import type { MutationId } from '../api/client.ts'
import type { Page } from '../api/queries.ts'
import { useCan } from './act/can.tsx'
import classes from './list.module.css'
import { QueryState } from './states.tsx'

/** A row is identified by its id or, if it has none, by its address. */
type Row = { id: number | string } | { address: string }

export interface Column<T> {
  title: string
  /** In the first column, a link to the row's page: arrow keys move along these links. */
  cell: (row: T) => ReactNode
  isNumber?: boolean
  /** Hidden in a narrow window. */
  isExtra?: boolean
  /** Hidden if the administrator's rights allow none of these changes. */
  changes?: readonly MutationId[]
}

/**
 * A page of a list. Arrow keys, or j and k, move from row to row; Enter opens the row. The caller keeps the page
 * cursor in the URL.
 */
export function List<T extends Row>({
  label,
  query,
  columns: all,
  below,
  empty,
  cursor,
  setCursor,
  isProse = false,
}: {
  label: string
  query: UseQueryResult<Page<T>>
  columns: Column<T>[]
  /** Details shown below an expanded row. */
  below?: (row: T) => ReactNode
  empty: ReactNode
  cursor: string | undefined
  setCursor: (cursor: string | undefined) => void
  isProse?: boolean
}) {
  const can = useCan()
  const columns = all.filter(({ changes }) => changes?.some((change) => can(change)) ?? true)
  return (
    <QueryState query={query} rows={8}>
      {({ data, next_cursor: next }) => (
        <div
          aria-busy={query.isFetching}
          className={classes.page}
          data-stale={query.isPlaceholderData || undefined}
        >
          {data.length > 0 ? (
            <Rows label={label} rows={data} columns={columns} below={below} isProse={isProse} />
          ) : next === null ? (
            empty
          ) : (
            <Text c="dimmed" ta="center" py="xl">
              No matches so far. There are more rows to search.
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
                {data.length > 0 ? 'Next page' : 'Continue search'}
              </Button>
            )}
          </Group>
        </div>
      )}
    </QueryState>
  )
}

/** The table of a list. Arrow keys, or j and k, move from row to row. */
export function Rows<T extends Row>({
  label,
  rows,
  columns,
  below,
  isProse = false,
}: {
  label: string
  rows: T[]
  columns: Column<T>[]
  below?: ((row: T) => ReactNode) | undefined
  /** Whether the first column contains sentences instead of names. It is then not bold. */
  isProse?: boolean
}) {
  const body = useRef<HTMLTableSectionElement>(null)
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key]
    if (!step || event.metaKey || event.ctrlKey || event.altKey) return
    // Events from keys pressed in a row's menu also bubble up to here, although the menu is rendered elsewhere.
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
    <div className={classes.list} data-prose={isProse || undefined}>
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
            {rows.map((row) => (
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
    </div>
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
