import { Button, Text, UnstyledButton } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Member } from '../../../api/operations.gen.ts'
import { usePage } from '../../../api/queries.ts'
import { Address } from '../../../components/address.tsx'
import { Can } from '../../../components/can.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { number } from '../../../components/numbers.ts'
import { PartHead } from '../../../components/page-head.tsx'
import { RowMenu } from '../../../components/row-menu.tsx'
import { Empty } from '../../../components/states.tsx'
import { memberColumns } from '../../../resources/members/member-columns.tsx'
import { useAct } from '../../act/use-act.tsx'
import { useActOn } from '../../act/use-act-on.ts'
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
    ...memberColumns(({ id, email, role }) =>
      role === 'owner' ? (
        <Owner email={email} />
      ) : (
        <Can change="members.edit" otherwise={<Address of={email} />}>
          <UnstyledButton fz="inherit" onClick={() => actOn('members.show', pathOf(id), editMember)}>
            <Address of={email} />
          </UnstyledButton>
        </Can>
      ),
    ),
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
    <Can change="projects.edit" field="user_id" otherwise={<Address of={email} />}>
      <UnstyledButton fz="inherit" onClick={() => project && start(editProject(project))}>
        <Address of={email} />
      </UnstyledButton>
      <Text size="sm" c="dimmed">
        Change the owner in project settings.
      </Text>
    </Can>
  )
}
