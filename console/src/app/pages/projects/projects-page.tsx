import { Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { usePage } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { useInstallation } from '../../../components/installation.ts'
import { To } from '../../../components/link.tsx'
import { List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { PendingInvitations } from './pending-invitations.tsx'

/** The projects that the user is a member of. */
export function ProjectsPage() {
  const [cursor, setCursor] = useState<string>()
  const mayCreate = useInstallation().data?.customers_create_projects ?? false
  const query = usePage('customer.projects.list', { query: { limit: 25, ...(cursor && { cursor }) } })
  const isEmpty = query.data?.data.length === 0
  const create = (
    <Button component={Link} to="/start">
      New project
    </Button>
  )
  return (
    <>
      <PageHead title="Projects">{mayCreate && !isEmpty && create}</PageHead>
      <PendingInvitations />
      <List
        label="Projects"
        query={query}
        columns={[
          {
            title: 'Name',
            cell: ({ id, name }) => (
              <To to="/projects/$projectId" params={{ projectId: String(id) }}>
                {name}
              </To>
            ),
          },
          {
            title: 'Status',
            cell: ({ is_locked }) => (is_locked ? <Badge tone="bad">locked</Badge> : 'active'),
          },
          { title: 'Created', cell: ({ created_at }) => <RelativeTime at={created_at} />, isExtra: true },
        ]}
        empty={
          <Empty icon="project" title="No projects" action={mayCreate && create}>
            {mayCreate
              ? 'You are not a member of a project.'
              : 'You are not a member of a project. Ask the owner of a project to invite you, or the operator to create one.'}
          </Empty>
        }
        cursor={cursor}
        setCursor={setCursor}
      />
    </>
  )
}
