import type { QueryOf } from '../../api/client.ts'
import type { AuditEntry } from '../../api/operations.gen.ts'
import { usePage } from '../../api/queries.ts'
import { Badge } from '../../components/badge.tsx'
import { To } from '../../components/link.tsx'
import { type Column, List } from '../../components/list.tsx'
import { Empty } from '../../components/states.tsx'
import { When } from '../../components/when.tsx'
import type { auditSearch } from '../../search.ts'
import { useNames } from './names.ts'
import { sentenceOf } from './sentences.ts'
import classes from './timeline.module.css'

export type AuditSearch = ReturnType<typeof auditSearch>

/** Who did what, and why, newest first. */
export function Timeline({
  search,
  setCursor,
}: {
  search: AuditSearch
  setCursor: (cursor: string | undefined) => void
}) {
  const query = usePage('audit.list', { query: queryOf(search) })
  const names = useNames(query.data?.data ?? [])
  const columns: Column<AuditEntry>[] = [
    {
      title: 'What happened',
      cell: (entry) => (
        <>
          <To to="/audit/$id" params={{ id: String(entry.id) }}>
            {sentenceOf(entry, names)}
          </To>
          {entry.reason && <span className={classes.reason}>: {entry.reason}</span>}
          {entry.limit_exception && (
            <>
              {' '}
              <Badge tone="warn">past a limit</Badge>
            </>
          )}
        </>
      ),
    },
    {
      title: 'Operation',
      isExtra: true,
      cell: ({ operation }) => <code className={classes.operation}>{operation}</code>,
    },
    {
      title: 'When',
      cell: ({ at }) => (
        <span className={classes.when}>
          <When at={at} />
        </span>
      ),
    },
  ]
  return (
    <List
      label="Audit"
      query={query}
      columns={columns}
      cursor={search.cursor}
      setCursor={setCursor}
      empty={<Empty title="Nobody did such a thing">Take a filter away, or widen the days.</Empty>}
    />
  )
}

const dayMs = 86_400_000
const startOf = (day: string): string => new Date(Date.parse(day)).toISOString()
const endOf = (day: string): string => new Date(Date.parse(day) + dayMs).toISOString()

/** The address speaks of days, of which the last one counts. */
const queryOf = ({ view: _, from, to, ...rest }: AuditSearch): QueryOf<'audit.list'> => ({
  ...rest,
  ...(from && { from: startOf(from) }),
  ...(to && { to: endOf(to) }),
})
