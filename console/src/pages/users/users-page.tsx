import { Anchor, Group, Select, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { User } from '../../api/operations.gen.ts'
import { usePage } from '../../api/queries.ts'
import { useActOn } from '../../components/act/use-act-on.ts'
import { Badge } from '../../components/badge.tsx'
import { To } from '../../components/link.tsx'
import { type Column, List } from '../../components/list.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { SearchField } from '../../components/search-field.tsx'
import { Empty } from '../../components/states.tsx'
import { When } from '../../components/when.tsx'
import { editUser, roles } from './acts.tsx'

const route = getRouteApi('/users')

const columnsOf = (edit: (user: User) => void): Column<User>[] => [
  {
    title: 'Person',
    cell: (user) => (
      <>
        <Group gap="xs">
          <Anchor component="button" size="md" ta="left" onClick={() => edit(user)}>
            {user.email}
          </Anchor>
          {!user.is_active && <Badge tone="bad">may not sign in</Badge>}
        </Group>
        <Text size="sm" c="dimmed">
          {user.name}
        </Text>
      </>
    ),
  },
  {
    title: 'Role',
    cell: ({ role }) => <Badge tone={role === 'admin' ? 'warn' : 'calm'}>{roles[role]}</Badge>,
  },
  {
    title: 'Second factor',
    isExtra: true,
    cell: ({ two_factor_enabled, role }) =>
      two_factor_enabled ? 'yes' : role === 'admin' ? <Badge tone="bad">none</Badge> : 'none',
  },
  { title: 'Created', isExtra: true, cell: ({ created_at }) => <When at={created_at} /> },
  {
    title: 'Audit',
    isExtra: true,
    cell: ({ id, email }) => (
      <To to="/audit" search={{ actor: id }} aria-label={`What they did: ${email}`}>
        What they did
      </To>
    ),
  },
]

export function UsersPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const actOn = useActOn()
  const query = usePage('users.list', { query: search })
  const columns = columnsOf(({ id }) => actOn('users.show', { id }, editUser))

  /** Another question begins at its first page, and takes the place of the last one in the history. */
  const ask = (part: Partial<typeof search>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })

  return (
    <>
      <PageHead title="Users" />
      <Group align="flex-end" mb="md" gap="sm" role="search">
        <SearchField
          placeholder="Part of an address or a name (press /)"
          value={search.q}
          onChange={(q) => ask({ q })}
          w={330}
        />
        <Select
          label="Role"
          value={search.role ?? null}
          onChange={(role) => ask({ role: (role ?? undefined) as typeof search.role })}
          data={Object.entries(roles).map(([value, label]) => ({ value, label }))}
          placeholder="Any"
          clearable
          w={160}
        />
        <Select
          label="Signing in"
          value={search.is_active === undefined ? null : String(search.is_active)}
          onChange={(value) => ask({ is_active: value === null ? undefined : value === 'true' })}
          data={[
            { value: 'true', label: 'May sign in' },
            { value: 'false', label: 'May not sign in' },
          ]}
          placeholder="Any"
          clearable
          w={160}
        />
      </Group>
      <List
        label="Users"
        query={query}
        columns={columns}
        cursor={search.cursor}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
        empty={<Empty title="Nobody fits">Search for less, or take a filter away.</Empty>}
      />
    </>
  )
}
