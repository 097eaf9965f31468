import { Anchor, Group, Select, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { User } from '../../../api/operations.gen.ts'
import { usePage } from '../../../api/queries.ts'
import { Address } from '../../../components/address.tsx'
import { Badge } from '../../../components/badge.tsx'
import { Can } from '../../../components/can.tsx'
import { countOf, FilterBar } from '../../../components/filter-bar.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { SearchField } from '../../../components/search-field.tsx'
import { Empty } from '../../../components/states.tsx'
import { useActOn } from '../../act/use-act-on.ts'
import { editUser, roles } from './acts.tsx'
import { rightsLabels } from './rights.ts'

const route = getRouteApi('/users')

const columnsOf = (edit: (user: User) => void): Column<User>[] => [
  {
    title: 'User',
    cell: (user) => (
      <>
        <Group gap="xs">
          <Can change="users.edit" otherwise={<Address of={user.email} />}>
            <Anchor component="button" size="md" ta="left" onClick={() => edit(user)}>
              <Address of={user.email} />
            </Anchor>
          </Can>
          {!user.is_active && <Badge tone="bad">cannot sign in</Badge>}
        </Group>
        <Text size="sm" c="dimmed">
          {user.name}
        </Text>
      </>
    ),
  },
  {
    title: 'Role',
    cell: ({ role, rights }) => (
      <Group gap={6}>
        <Badge tone={role === 'admin' ? 'warn' : 'calm'}>{roles[role]}</Badge>
        {rights !== null && rights !== 'full' && <Badge>{rightsLabels[rights]}</Badge>}
      </Group>
    ),
  },
  {
    title: 'Two-factor',
    isExtra: true,
    cell: ({ two_factor_enabled, role }) =>
      two_factor_enabled ? 'yes' : role === 'admin' ? <Badge tone="bad">none</Badge> : 'none',
  },
  { title: 'Created', isExtra: true, cell: ({ created_at }) => <RelativeTime at={created_at} /> },
  {
    title: 'Audit',
    isExtra: true,
    cell: ({ id, email }) => (
      <To to="/audit" search={{ actor: id }} aria-label={`Activity of ${email}`}>
        Activity
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

  /** Changing a filter returns to the first page and replaces the current entry in the browser history. */
  const setFilter = (part: Partial<typeof search>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })

  return (
    <>
      <PageHead title="Users" />
      <FilterBar
        count={countOf(search.role, search.is_active)}
        search={
          <SearchField
            placeholder="Part of an address or a name"
            value={search.q}
            onChange={(q) => setFilter({ q })}
            w={300}
          />
        }
      >
        <Select
          label="Role"
          value={search.role ?? null}
          onChange={(role) => setFilter({ role: (role ?? undefined) as typeof search.role })}
          data={Object.entries(roles).map(([value, label]) => ({ value, label }))}
          placeholder="Any"
          clearable
          w={160}
        />
        <Select
          label="Access"
          value={search.is_active === undefined ? null : String(search.is_active)}
          onChange={(value) => setFilter({ is_active: value === null ? undefined : value === 'true' })}
          data={[
            { value: 'true', label: 'Can sign in' },
            { value: 'false', label: 'Cannot sign in' },
          ]}
          placeholder="Any"
          clearable
          w={160}
        />
      </FilterBar>
      <List
        label="Users"
        query={query}
        columns={columns}
        cursor={search.cursor}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
        empty={<Empty title="No matching users">Try a shorter search or clear a filter.</Empty>}
      />
    </>
  )
}
