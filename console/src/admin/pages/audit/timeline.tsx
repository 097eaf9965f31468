import type { QueryOf } from '../../../api/client.ts'
import type { AuditEntry } from '../../../api/operations.gen.ts'
import { usePage } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { useZone } from '../../../components/use-zone.tsx'
import { periodOf, type Zone } from '../../../components/zone.ts'
import type { auditSearch } from '../../search.ts'
import { useNames } from './names.ts'
import { type Names, sentenceOf } from './sentences.ts'
import classes from './timeline.module.css'

export type AuditSearch = ReturnType<typeof auditSearch>

/** The change as a sentence, linked to its entry. */
export const changeColumn = (names: Names): Column<AuditEntry> => ({
  title: 'Change',
  cell: (entry) => (
    <>
      <To to="/audit/$id" params={{ id: String(entry.id) }}>
        {sentenceOf(entry, names)}
      </To>
      {entry.reason && <span className={classes.reason}>: {entry.reason}</span>}
      {entry.limit_exception && (
        <>
          {' '}
          <Badge tone="warn">over plan limit</Badge>
        </>
      )}
    </>
  ),
})

export const timeColumn: Column<AuditEntry> = {
  title: 'Time',
  cell: ({ at }) => (
    <span className={classes.time}>
      <ExactTime at={at} />
    </span>
  ),
}

/** Audit entries, newest first. */
export function Timeline({
  search,
  setCursor,
}: {
  search: AuditSearch
  setCursor: (cursor: string | undefined) => void
}) {
  const query = usePage('audit.list', { query: queryOf(search, useZone()) })
  const names = useNames(query.data?.data ?? [])
  const columns: Column<AuditEntry>[] = [
    changeColumn(names),
    {
      title: 'Operation',
      isExtra: true,
      cell: ({ operation }) => <code className={classes.operation}>{operation}</code>,
    },
    timeColumn,
  ]
  return (
    <List
      label="Audit"
      isProse
      query={query}
      columns={columns}
      cursor={search.cursor}
      setCursor={setCursor}
      empty={<Empty title="No matching entries">Remove a filter or widen the date range.</Empty>}
    />
  )
}

const queryOf = (
  { view: _, from, to, operation, ...rest }: AuditSearch,
  zone: Zone,
): QueryOf<'audit.list'> => ({
  ...rest,
  // The API rejects a value that is not one of its operations.
  ...(operation && { operation: operation as NonNullable<QueryOf<'audit.list'>['operation']> }),
  ...periodOf({ from, to }, zone),
})
