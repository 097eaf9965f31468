import { Text } from '@mantine/core'
import type { Endpoint } from '../../api/operations.gen.ts'
import { Badge } from '../../components/badge.tsx'
import { To } from '../../components/link.tsx'
import type { Column } from '../../components/list.tsx'
import { number } from '../../components/numbers.ts'
import { RelativeTime } from '../../components/relative-time.tsx'
import { EndpointBadge } from './endpoint-badge.tsx'

/** The columns of a list of endpoints. */
export const endpointColumns: Column<Endpoint>[] = [
  {
    title: 'Endpoint',
    cell: ({ project_id, id, name }) => (
      <To to="/projects/$projectId/endpoints/$id" params={{ projectId: String(project_id), id: String(id) }}>
        {name}
      </To>
    ),
  },
  { title: 'URL', isExtra: true, cell: ({ url }) => url },
  {
    title: 'Status',
    cell: (endpoint) => (
      <>
        <EndpointBadge endpoint={endpoint} />
        {endpoint.disabled_reason && (
          <Text size="sm" c="dimmed">
            {endpoint.disabled_reason}
          </Text>
        )}
      </>
    ),
  },
  {
    title: 'Consecutive failures',
    isNumber: true,
    isExtra: true,
    cell: ({ consecutive_failures: failures }) =>
      failures > 0 ? <Badge tone="warn">{number(failures)}</Badge> : '0',
  },
  {
    title: 'Last success',
    isExtra: true,
    cell: ({ last_success_at }) => <RelativeTime at={last_success_at} />,
  },
]
