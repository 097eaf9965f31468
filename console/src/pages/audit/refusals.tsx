import { Group, Text } from '@mantine/core'
import type { Denial } from '../../api/operations.gen.ts'
import { useMany, usePage } from '../../api/queries.ts'
import { number } from '../../components/figures.tsx'
import { To } from '../../components/link.tsx'
import { type Column, List } from '../../components/list.tsx'
import { Empty } from '../../components/states.tsx'
import { UserSelect } from '../../components/user-select.tsx'
import { When } from '../../components/when.tsx'
import type { AuditSearch } from './timeline.tsx'

/** Who was refused what, how often. */
export function Refusals({
  search: { actor, cursor },
  ask,
  setCursor,
}: {
  search: AuditSearch
  ask: (part: Partial<AuditSearch>) => void
  setCursor: (cursor: string | undefined) => void
}) {
  const query = usePage('denials.list', { query: { actor, cursor } })
  const ids = new Set((query.data?.data ?? []).map(({ actor_id }) => actor_id))
  const users = useMany(
    'users.show',
    [...ids].map((id) => ({ id })),
  )
  const columns: Column<Denial>[] = [
    {
      title: 'Who',
      cell: ({ actor_id }) => {
        const user = users.find(({ id }) => id === actor_id)
        return (
          <To to="/users" search={{ q: user?.email }}>
            {user ? user.name || user.email : `User ${actor_id}`}
          </To>
        )
      },
    },
    { title: 'Was refused', cell: ({ operation }) => <code>{operation}</code> },
    { title: 'Because', isExtra: true, cell: ({ error }) => error.replaceAll('_', ' ') },
    {
      title: 'Project',
      isExtra: true,
      cell: ({ project_id: id }) =>
        id !== null && (
          <To to="/projects/$projectId" params={{ projectId: String(id) }}>
            {id}
          </To>
        ),
    },
    { title: 'Times', isNumber: true, cell: ({ count }) => number(count) },
    { title: 'When', cell: ({ minute }) => <When at={minute} /> },
  ]
  return (
    <>
      <Group mb="md" align="flex-end" justify="space-between">
        <UserSelect
          label="Who"
          value={actor ?? null}
          onChange={(value) => ask({ actor: value ?? undefined })}
          isFilter
          w={240}
        />
        <Text c="dimmed" size="sm">
          What signed-in users were refused, by the minute, kept for 90 days.
        </Text>
      </Group>
      <List
        label="Refusals"
        query={query}
        columns={columns}
        cursor={cursor}
        setCursor={setCursor}
        empty={<Empty title="Nobody was refused anything" />}
      />
    </>
  )
}
