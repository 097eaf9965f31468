import type { ReactNode } from 'react'
import type { Member } from '../../api/operations.gen.ts'
import { Badge } from '../../components/badge.tsx'
import type { Column } from '../../components/list.tsx'
import { RelativeTime } from '../../components/relative-time.tsx'

/** The columns of a list of members, before those with the actions of the entrance. */
export const memberColumns = (email: (member: Member) => ReactNode): Column<Member>[] => [
  { title: 'Email', cell: email },
  { title: 'Name', isExtra: true, cell: ({ name }) => name },
  { title: 'Role', cell: ({ role }) => <Badge>{role}</Badge> },
  {
    title: 'Joined',
    cell: ({ joined_at, invited_at }) =>
      joined_at === null ? (
        <>
          <Badge tone="warn">invited</Badge> <RelativeTime at={invited_at} />
        </>
      ) : (
        <RelativeTime at={joined_at} />
      ),
  },
]
