import { Button, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { PlatformSuppression } from '../../../api/operations.gen.ts'
import { asPage, useAnswer, usePage } from '../../../api/queries.ts'
import { Address } from '../../../components/address.tsx'
import { Can } from '../../../components/can.tsx'
import { ExactInput } from '../../../components/exact-input.tsx'
import { FilterBar } from '../../../components/filter-bar.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { RowMenu } from '../../../components/row-menu.tsx'
import { Empty } from '../../../components/states.tsx'
import { useAct } from '../../act/use-act.tsx'
import { createPlatformSuppression, deletePlatformSuppression, importPlatformSuppressions } from './acts.tsx'

const route = getRouteApi('/suppressions')

/** The addresses to which no project can send. */
export function SuppressionsPage() {
  const { cursor, address } = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const columns: Column<PlatformSuppression>[] = [
    {
      title: 'Address',
      cell: (row) => (
        <>
          <Address of={row.address} />
          <Text size="sm" c="dimmed" hiddenFrom="sm">
            {row.reason}
          </Text>
        </>
      ),
    },
    { title: 'Reason', isExtra: true, cell: ({ reason }) => reason },
    { title: 'Since', cell: ({ created_at }) => <RelativeTime at={created_at} /> },
    {
      title: 'More',
      changes: ['platform-suppressions.delete'],
      cell: (row) => (
        <RowMenu
          of={row.address}
          acts={[
            {
              operation: 'platform-suppressions.delete',
              label: 'Delete from list',
              onClick: () => start(deletePlatformSuppression(row)),
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
        below="No project can send to these addresses. Bounces and complaints never add an address here."
      >
        <Can change="platform-suppressions.import">
          <Button variant="default" onClick={() => start(importPlatformSuppressions)}>
            Import
          </Button>
        </Can>
        <Can change="platform-suppressions.create">
          <Button onClick={() => start(createPlatformSuppression)}>Suppress address</Button>
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
        query={useSuppressions(cursor, address)}
        columns={columns}
        cursor={cursor}
        setCursor={(next) => void navigate({ search: { cursor: next } })}
        empty={
          address === undefined ? (
            <Empty title="No suppressed addresses">Add the first one with “Suppress address”.</Empty>
          ) : (
            <Empty title="Not on the list">Projects can send to {address}.</Empty>
          )
        }
      />
    </>
  )
}

/** A page of the list, or the entry of one address. */
function useSuppressions(cursor: string | undefined, address: string | undefined) {
  const page = usePage('platform-suppressions.list', { query: { cursor } })
  const one = useAnswer(
    'platform-suppressions.show',
    { path: { address: address ?? '' } },
    { isEnabled: address !== undefined },
  )
  if (address === undefined) return page
  return asPage(one) as typeof page
}
