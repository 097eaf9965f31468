import { Text } from '@mantine/core'
import type { Firing, Policy } from '../../../api/operations.gen.ts'
import { useMany, usePage } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { Empty } from '../../../components/states.tsx'
import { usePolicies } from './policies.ts'
import { PolicyLink } from './policy-link.tsx'
import { figuresOf, outcomes, signals } from './sentences.ts'

const pageLimit = 20
const pollMs = 30_000

interface FiringsProps {
  cursor: string | undefined
  setCursor: (cursor: string | undefined) => void
}

/** What a policy has recorded, newest first. */
export function FiringsOfPolicy({ policy, cursor, setCursor }: FiringsProps & { policy: Policy }) {
  const query = usePage(
    'firings.list',
    { query: { policy_id: policy.id, limit: pageLimit, ...(cursor && { cursor }) } },
    { pollMs },
  )
  const ids = new Set((query.data?.data ?? []).map(({ project_id }) => project_id))
  const projects = useMany(
    'projects.show',
    [...ids].map((project_id) => ({ project_id })),
  )
  const nameOf = (wanted: number) => projects.find(({ id }) => id === wanted)?.name ?? `project ${wanted}`
  const columns: Column<Firing>[] = [
    {
      title: 'Project',
      cell: (firing) => (
        <>
          <To to="/projects/$projectId/sending" params={{ projectId: String(firing.project_id) }}>
            {nameOf(firing.project_id)}
          </To>
          <Below>{textOf(firing, policy)}</Below>
        </>
      ),
    },
    ...columnsOf(() => policy),
  ]
  return (
    <List
      label="Firings"
      query={query}
      columns={columns}
      cursor={cursor}
      setCursor={setCursor}
      empty={
        <Empty title="No firings recorded">A policy in shadow or enforce records its firings here.</Empty>
      }
    />
  )
}

/** The firings of all policies for a project, newest first. */
export function FiringsOfProject({ projectId, cursor, setCursor }: FiringsProps & { projectId: number }) {
  const policies = usePolicies().data?.data ?? []
  const policyOf = (wanted: number) => policies.find(({ id }) => id === wanted)
  const query = usePage(
    'firings.list',
    { query: { project_id: projectId, limit: pageLimit, ...(cursor && { cursor }) } },
    { pollMs },
  )
  const columns: Column<Firing>[] = [
    {
      title: 'Policy',
      cell: (firing) => (
        <>
          <PolicyLink id={firing.policy_id} />
          <Below>{textOf(firing, policyOf(firing.policy_id))}</Below>
        </>
      ),
    },
    ...columnsOf(policyOf),
  ]
  return (
    <List
      label="Firings"
      query={query}
      columns={columns}
      cursor={cursor}
      setCursor={setCursor}
      empty={<Empty title="No firings">No policy has fired for this project in the last 90 days.</Empty>}
    />
  )
}

const columnsOf = (policyOf: (id: number) => Policy | undefined): Column<Firing>[] => [
  { title: 'Time', cell: ({ at }) => <ExactTime at={at} /> },
  {
    title: 'Figures',
    isExtra: true,
    cell: (firing) => textOf(firing, policyOf(firing.policy_id)),
  },
  { title: 'Outcome', cell: (firing) => <Outcome firing={firing} /> },
]

const textOf = (firing: Firing, policy: Policy | undefined): string | undefined =>
  policy && `${signals[policy.signal].label} ${figuresOf(policy.signal, firing)}`

/** In a narrow window, the figures are in the first column. */
function Below({ children }: { children: string | undefined }) {
  return (
    <Text size="sm" c="dimmed" hiddenFrom="sm">
      {children}
    </Text>
  )
}

function Outcome({ firing: { outcome, intervention_id, project_id } }: { firing: Firing }) {
  const { label, tone, meaning } = outcomes[outcome]
  return (
    <>
      <Badge tone={tone}>{label}</Badge>
      <Text size="sm" c="dimmed" component="div">
        {intervention_id === null ? (
          meaning
        ) : (
          <To
            to="/projects/$projectId/sending"
            params={{ projectId: String(project_id) }}
            hash="interventions"
            inherit
          >
            Show intervention
          </To>
        )}
      </Text>
    </>
  )
}
