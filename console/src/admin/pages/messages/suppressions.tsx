import { Button, Group, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Suppression } from '../../../api/operations.gen.ts'
import { usePage } from '../../../api/queries.ts'
import { Address } from '../../../components/address.tsx'
import { Can } from '../../../components/can.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { RowMenu } from '../../../components/row-menu.tsx'
import { Empty } from '../../../components/states.tsx'
import { suppressionReasons } from '../../../resources/suppressions/reasons.ts'
import { useAct } from '../../act/use-act.tsx'
import { createSuppression, deleteSuppression, importSuppressions } from '../suppressions/acts.tsx'

const route = getRouteApi('/projects/$projectId/messages')

/** Suppressed addresses. Each links to the messages sent to it. */
export function Suppressions() {
  const { cursor } = route.useSearch()
  const { projectId } = route.useParams()
  const navigate = route.useNavigate()
  const start = useAct()
  const query = usePage(
    'suppressions.list',
    { path: { project_id: Number(projectId) }, query: { cursor } },
    { pollMs: 5_000 },
  )
  const columns: Column<Suppression>[] = [
    {
      title: 'Address',
      cell: ({ address }) => (
        <To to="/projects/$projectId/messages" params={{ projectId }} search={{ recipient: address }}>
          <Address of={address} />
        </To>
      ),
    },
    { title: 'Reason', cell: ({ reason }) => suppressionReasons[reason] },
    {
      title: 'Caused by',
      isExtra: true,
      cell: ({ message_id: id }) =>
        id && (
          <To to="/projects/$projectId/messages/$id" params={{ projectId, id }}>
            View message
          </To>
        ),
    },
    { title: 'Since', cell: ({ created_at }) => <RelativeTime at={created_at} /> },
    {
      title: 'More',
      changes: ['suppressions.delete'],
      cell: (suppression) => (
        <RowMenu
          of={suppression.address}
          acts={[
            {
              operation: 'suppressions.delete',
              label: 'Delete suppression',
              onClick: () => start(deleteSuppression(Number(projectId), suppression)),
              isDangerous: true,
            },
          ]}
        />
      ),
    },
  ]
  return (
    <>
      <Group justify="space-between" align="flex-start" mb="md">
        <Text c="dimmed" flex={1} miw={240}>
          The project cannot send to these addresses. The customer can delete suppressions, except those
          caused by a complaint.
        </Text>
        <Group gap="xs">
          <Can change="suppressions.import">
            <Button variant="default" onClick={() => start(importSuppressions(Number(projectId)))}>
              Import
            </Button>
          </Can>
          <Can change="suppressions.create">
            <Button onClick={() => start(createSuppression(Number(projectId)))}>Suppress address</Button>
          </Can>
        </Group>
      </Group>
      <List
        label="Suppressed addresses"
        query={query}
        columns={columns}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { view: 'suppressed', cursor: next } })}
        empty={
          <Empty title="No suppressed addresses">
            Hard bounces and complaints add addresses. You can add one with “Suppress address”.
          </Empty>
        }
      />
    </>
  )
}
