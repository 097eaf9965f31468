import { Button, Group, Table, Text, UnstyledButton } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { Fragment, type KeyboardEvent, type ReactNode } from 'react'
import type { OperationId } from '../api/client.ts'
import type { Page } from '../api/queries.ts'
import { useCan } from './can.tsx'
import classes from './list.module.css'
import { moveBetweenRows, rememberRow } from './list-keys.ts'
import { QueryState } from './states.tsx'

/** A row is identified by its id or, if it has none, by its address. */
type Row = { id: number | string } | { address: string }

export interface Column<T> {
  title: string
  /** In the first column, a link to the row's page: arrow keys move along these links. */
  cell: (row: T) => ReactNode
  isNumber?: boolean
  /** The heading sorts the list by this field; the first click in this order. `-name` is descending. */
  sort?: string
  /** Hidden in a narrow window. */
  isExtra?: boolean
  /** Hidden if the user can make none of these changes. */
  changes?: readonly OperationId[]
}

export interface Sorting {
  value: string
  onChange: (value: string) => void
}

/** A page of a list. The caller keeps the page cursor and the order in the URL. */
export function List<T extends Row>({
  label,
  query,
  columns: all,
  below,
  empty,
  cursor,
  setCursor,
  sorting,
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
  /** For lists whose columns have a `sort`. */
  sorting?: Sorting
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
            <Rows
              label={label}
              rows={data}
              columns={columns}
              below={below}
              sorting={sorting}
              isProse={isProse}
            />
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

/** The table of a list. Arrow keys, or j and k, move from row to row (list-keys.ts); Enter opens the row. */
export function Rows<T extends Row>({
  label,
  rows,
  columns,
  below,
  sorting,
  isProse = false,
}: {
  label: string
  rows: T[]
  columns: Column<T>[]
  below?: ((row: T) => ReactNode) | undefined
  sorting?: Sorting | undefined
  /** Whether the first column contains sentences instead of names. It is then not bold. */
  isProse?: boolean
}) {
  const move = (event: KeyboardEvent<HTMLElement>) => {
    const { key, currentTarget: body, target } = event
    const step = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : undefined
    if (!step || event.metaKey || event.ctrlKey || event.altKey) return
    // Events from keys pressed in a row's menu also bubble up to here, although the menu is rendered elsewhere.
    if (!body.contains(target as Node)) return
    if (moveBetweenRows(step, body.parentElement ?? body)) event.preventDefault()
  }
  return (
    <div className={classes.list} data-prose={isProse || undefined}>
      <Table.ScrollContainer minWidth={0}>
        <Table aria-label={label} highlightOnHover verticalSpacing={7}>
          <Table.Thead>
            <Table.Tr>
              {columns.map(({ title, sort, ...kind }) => (
                <Table.Th
                  key={title}
                  scope="col"
                  className={classOf(kind)}
                  aria-sort={sort && sorting ? orderOf(sort, sorting.value) : undefined}
                >
                  {sort && sorting ? <SortButton title={title} sort={sort} sorting={sorting} /> : title}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody data-rows onKeyDown={move} onFocus={({ target }) => rememberRow(target)}>
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

const reverseOf = (sort: string) => (sort.startsWith('-') ? sort.slice(1) : `-${sort}`)

const orderOf = (sort: string, value: string) =>
  value !== sort && value !== reverseOf(sort) ? 'none' : value.startsWith('-') ? 'descending' : 'ascending'

/** The first click sorts by the column; further clicks reverse the order. */
function SortButton({
  title,
  sort,
  sorting: { value, onChange },
}: {
  title: string
  sort: string
  sorting: Sorting
}) {
  const order = orderOf(sort, value)
  return (
    <UnstyledButton
      className={classes.sort}
      onClick={() => onChange(value === sort ? reverseOf(sort) : sort)}
    >
      {title}
      <span className={classes.order} data-order={order} aria-hidden="true">
        {order === 'descending' ? '↓' : '↑'}
      </span>
    </UnstyledButton>
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
