import { Button, Text, UnstyledButton } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Member } from '../../api/operations.gen.ts'
import { usePage } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Can } from '../../components/act/can.tsx'
import { useActOn } from '../../components/act/use-act-on.ts'
import { Badge } from '../../components/badge.tsx'
import { type Column, List } from '../../components/list.tsx'
import { number } from '../../components/numbers.ts'
import { PartHead } from '../../components/page-head.tsx'
import { RelativeTime } from '../../components/relative-time.tsx'
import { RowMenu } from '../../components/row-menu.tsx'
import { Empty } from '../../components/states.tsx'
import { editProject } from '../projects/acts.tsx'
import { useProject } from '../projects/project-page.tsx'
import { createMember, deleteMember, editMember } from './acts.tsx'

const route = getRouteApi('/projects/$projectId/members')

export function MembersPage() {
  const projectId = Number(route.useParams().projectId)
  const { cursor } = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const project = useProject()
  const query = usePage('members.list', {
    path: { project_id: projectId },
    query: { ...(cursor && { cursor }) },
  })
  const isWhole = cursor === undefined && query.data?.next_cursor === null
  const limit = project.data?.data.plan.max_users
  return (
    <>
      <PartHead
        title="Members"
        below={
          isWhole && limit !== undefined
            ? `${number(query.data?.data.length ?? 0)} of ${number(limit)} members in the plan, including invitations.`
            : 'Users with access to this project.'
        }
      >
        <Can change="members.create">
          <Button onClick={() => start(createMember(projectId))}>New member</Button>
        </Can>
      </PartHead>
      <List
        label="Members"
        query={query}
        columns={useColumns(projectId)}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={<Empty title="No members" />}
      />
    </>
  )
}

function useColumns(projectId: number): Column<Member>[] {
  const actOn = useActOn()
  const pathOf = (id: number) => ({ project_id: projectId, id })
  return [
    {
      title: 'Email',
      cell: ({ id, email, role }) =>
        role === 'owner' ? (
          <Owner email={email} />
        ) : (
          <Can change="members.edit" otherwise={email}>
            <UnstyledButton fz="inherit" onClick={() => actOn('members.show', pathOf(id), editMember)}>
              {email}
            </UnstyledButton>
          </Can>
        ),
    },
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
    {
      title: 'More',
      changes: ['members.edit', 'members.delete'],
      cell: ({ id, email, role }) =>
        role !== 'owner' && (
          <RowMenu
            of={email}
            acts={[
              {
                operation: 'members.edit',
                label: 'Change role',
                onClick: () => actOn('members.show', pathOf(id), editMember),
              },
              {
                operation: 'members.delete',
                label: 'Remove member',
                onClick: () => actOn('members.show', pathOf(id), deleteMember),
                isDangerous: true,
              },
            ]}
          />
        ),
    },
  ]
}

/** The owner cannot be edited or removed here. */
function Owner({ email }: { email: string }) {
  const start = useAct()
  const { data: project } = useProject()
  return (
    <Can change="projects.edit" field="user_id" otherwise={email}>
      <UnstyledButton fz="inherit" onClick={() => project && start(editProject(project))}>
        {email}
      </UnstyledButton>
      <Text size="sm" c="dimmed">
        Change the owner in project settings.
      </Text>
    </Can>
  )
}
