import { Button, Group, Text } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import type { Firing, Policy } from '../../../api/operations.gen.ts'
import { type Page, useAnswer } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { ModeBadge, TrippedBadge } from './mode-badge.tsx'
import { usePolicies } from './policies.ts'
import { conditionOf, limitsOf, reactionOf } from './sentences.ts'

export function PoliciesPage() {
  const navigate = useNavigate()
  // The last firings of all policies, instead of one request per policy.
  const recent = useAnswer('firings.list', { query: { limit: 200 } })
  return (
    <>
      <PageHead
        title="Policies"
        below="Rules that warn, slow down or stop projects automatically. Shadow only records what a policy would do."
      >
        <Can change="policies.create">
          <Button onClick={() => void navigate({ to: '/policies/new' })}>New policy</Button>
        </Can>
      </PageHead>
      <List
        label="Policies"
        query={usePolicies()}
        columns={columnsOf(recent.data)}
        cursor={undefined}
        setCursor={() => undefined}
        empty={<Empty title="No policies">Create the first one with “New policy”.</Empty>}
      />
    </>
  )
}

const columnsOf = (recent: Page<Firing> | undefined): Column<Policy>[] => [
  {
    title: 'Policy',
    cell: (policy) => (
      <>
        <Group gap="xs">
          <To to="/policies/$id" params={{ id: String(policy.id) }}>
            {policy.name}
          </To>
          <TrippedBadge policy={policy} />
        </Group>
        <Text size="sm" c="dimmed">
          {[conditionOf(policy), ...limitsOf(policy.applies_to)].join(' · ')}
        </Text>
        <Text size="sm" c="dimmed" hiddenFrom="sm">
          Starts a {reactionOf(policy.intervention)}
        </Text>
      </>
    ),
  },
  { title: 'Mode', cell: ({ mode }) => <ModeBadge mode={mode} /> },
  { title: 'Intervention', isExtra: true, cell: ({ intervention }) => reactionOf(intervention) },
  {
    title: 'Last firing',
    isExtra: true,
    cell: ({ id }) => {
      const last = recent?.data.find(({ policy_id }) => policy_id === id)
      if (last) return <RelativeTime at={last.at} />
      return recent?.next_cursor === null ? 'none' : '–'
    },
  },
]
