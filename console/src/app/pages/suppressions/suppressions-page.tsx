import { Button } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Suppression } from '../../../api/operations.gen.ts'
import { asPage, useAnswer, usePage } from '../../../api/queries.ts'
import { Address } from '../../../components/address.tsx'
import { Can } from '../../../components/can.tsx'
import { ExactInput } from '../../../components/exact-input.tsx'
import { FilterBar } from '../../../components/filter-bar.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { RowMenu } from '../../../components/row-menu.tsx'
import { Empty } from '../../../components/states.tsx'
import { suppressionReasons } from '../../../resources/suppressions/reasons.ts'
import { useAct } from '../../act/use-act.tsx'
import { createSuppression, deleteSuppression, importSuppressions } from './acts.tsx'
import { ExportButton } from './export-button.tsx'

const route = getRouteApi('/projects/$projectId/suppressions')

/** Addresses to which the project does not send. Each links to the messages sent to it. */
export function SuppressionsPage() {
  const { address, cursor } = route.useSearch()
  const { projectId } = route.useParams()
  const id = Number(projectId)
  const navigate = route.useNavigate()
  const start = useAct()
  const columns: Column<Suppression>[] = [
    {
      title: 'Address',
      cell: (row) => (
        <To to="/projects/$projectId/messages" params={{ projectId }} search={{ recipient: row.address }}>
          <Address of={row.address} />
        </To>
      ),
    },
    { title: 'Reason', cell: ({ reason }) => suppressionReasons[reason] },
    {
      title: 'Caused by',
      isExtra: true,
      cell: ({ message_id }) =>
        message_id && (
          <To to="/projects/$projectId/messages/$id" params={{ projectId, id: message_id }}>
            View message
          </To>
        ),
    },
    { title: 'Since', cell: ({ created_at }) => <RelativeTime at={created_at} /> },
    {
      title: 'More',
      changes: ['customer.suppressions.delete'],
      cell: (row) =>
        // Only an administrator of the service can delete a suppression that a complaint caused.
        row.reason !== 'complaint' && (
          <RowMenu
            of={row.address}
            acts={[
              {
                operation: 'customer.suppressions.delete',
                label: 'Delete suppression',
                onClick: () => start(deleteSuppression(id, row)),
                isDangerous: true,
              },
            ]}
          />
        ),
    },
  ]
  return (
    <>
      <PageHead
        title="Suppressions"
        below="The project does not send to these addresses. Hard bounces and complaints add them."
      >
        <ExportButton projectId={id} />
        <Can change="customer.suppressions.import">
          <Button variant="default" onClick={() => start(importSuppressions(id))}>
            Import
          </Button>
        </Can>
        <Can change="customer.suppressions.create">
          <Button onClick={() => start(createSuppression(id))}>Suppress address</Button>
        </Can>
      </PageHead>
      <FilterBar
        search={
          <ExactInput
            label="Address"
            placeholder="Full address, then Enter"
            value={address}
            onCommit={(wanted) => void navigate({ search: { address: wanted }, replace: true })}
            maxLength={320}
            w={260}
          />
        }
      />
      <List
        label="Suppressed addresses"
        query={useSuppressions(id, cursor, address)}
        columns={columns}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={
          address === undefined ? (
            <Empty title="No suppressed addresses">
              Addresses that bounce or complain appear here. You can also import those of your previous
              provider.
            </Empty>
          ) : (
            <Empty title="Not suppressed">The project can send to {address}.</Empty>
          )
        }
      />
    </>
  )
}

/** A page of the list, or the entry of one address. */
function useSuppressions(projectId: number, cursor: string | undefined, address: string | undefined) {
  const path = { project_id: projectId }
  const page = usePage('customer.suppressions.list', { path, query: { ...(cursor && { cursor }) } })
  const one = useAnswer(
    'customer.suppressions.show',
    { path: { ...path, address: address ?? '' } },
    { isEnabled: address !== undefined },
  )
  return address === undefined ? page : (asPage(one) as typeof page)
}
