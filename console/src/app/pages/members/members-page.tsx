import { Button, Group, Stack, UnstyledButton } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Member } from '../../../api/operations.gen.ts'
import { usePage } from '../../../api/queries.ts'
import { useMe } from '../../../api/session.ts'
import { Address } from '../../../components/address.tsx'
import { Badge } from '../../../components/badge.tsx'
import { Can, useCan } from '../../../components/can.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { type RowAct, RowMenu } from '../../../components/row-menu.tsx'
import { Empty } from '../../../components/states.tsx'
import { memberColumns } from '../../../resources/members/member-columns.tsx'
import { useAct } from '../../act/use-act.tsx'
import { useActOn } from '../../act/use-act-on.ts'
import { editMember, inviteMember, leaveProject, removeMember } from './acts.tsx'
import { Roles } from './roles.tsx'

const route = getRouteApi('/projects/$projectId/members')

export function MembersPage() {
  const projectId = Number(route.useParams().projectId)
  const { cursor } = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const query = usePage('customer.members.list', {
    path: { project_id: projectId },
    query: { ...(cursor && { cursor }) },
  })
  return (
    <Stack gap="xl">
      <section>
        <PageHead title="Members" below="Users with access to this project.">
          <Can change="customer.members.create">
            <Button onClick={() => start(inviteMember(projectId))}>Invite member</Button>
          </Can>
        </PageHead>
        <List
          label="Members"
          query={query}
          columns={useColumns(projectId)}
          cursor={cursor}
          setCursor={(next) => void navigate({ search: { cursor: next } })}
          empty={<Empty title="No members" />}
        />
      </section>
      <Roles />
    </Stack>
  )
}

function useColumns(projectId: number): Column<Member>[] {
  const me = useMe()
  const can = useCan()
  const actOn = useActOn()
  const navigate = route.useNavigate()
  const show = 'customer.members.show'
  const pathOf = ({ id }: Member) => ({ project_id: projectId, id })
  const edit = (member: Member) => actOn(show, pathOf(member), editMember)
  const leave = () => void navigate({ to: '/projects' })
  const actsOn = (member: Member): RowAct[] => {
    if (member.role === 'owner') return []
    // An action that the role does not allow is not shown.
    const editing: RowAct[] = [
      { operation: 'customer.members.edit', label: 'Change role', onClick: () => edit(member) },
    ]
    const operation = 'customer.members.delete'
    if (member.user_id === me.id) {
      const onClick = () => actOn(show, pathOf(member), (loaded) => leaveProject(loaded, leave))
      return [...editing, { operation, label: 'Leave project', onClick, isDangerous: true }]
    }
    // Everybody can leave, but only owners and admins can remove others.
    if (!can('customer.members.edit')) return []
    const onClick = () => actOn(show, pathOf(member), removeMember)
    return [...editing, { operation, label: 'Remove member', onClick, isDangerous: true }]
  }
  return [
    ...memberColumns((member) => (
      <Group gap="xs">
        {member.role === 'owner' || !can('customer.members.edit') ? (
          <Address of={member.email} />
        ) : (
          <UnstyledButton fz="inherit" onClick={() => edit(member)}>
            <Address of={member.email} />
          </UnstyledButton>
        )}
        {member.user_id === me.id && <Badge>you</Badge>}
      </Group>
    )),
    { title: 'More', cell: (member) => <RowMenu of={member.email} acts={actsOn(member)} /> },
  ]
}
