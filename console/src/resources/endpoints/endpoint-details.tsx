import type { Endpoint } from '../../api/operations.gen.ts'
import { Badge } from '../../components/badge.tsx'
import { DescriptionList } from '../../components/description-list.tsx'
import { number } from '../../components/numbers.ts'
import { ExactAndRelativeTime } from '../../components/relative-time.tsx'

export function EndpointDetails({ endpoint }: { endpoint: Endpoint }) {
  const { consecutive_failures: failures } = endpoint
  return (
    <DescriptionList
      items={[
        ['URL', endpoint.url],
        ['Events', endpoint.events.length === 0 ? 'none' : endpoint.events.join(', ')],
        ['Secret', <code key="hint">whsec_…{endpoint.secret_hint}</code>],
        ['Secret rotated', <ExactAndRelativeTime key="rotated" at={endpoint.secret_rotated_at} />],
        ['Last success', <ExactAndRelativeTime key="success" at={endpoint.last_success_at} />],
        [
          'Consecutive failures',
          failures > 0 ? (
            <Badge key="failures" tone="warn">
              {number(failures)}
            </Badge>
          ) : (
            'none'
          ),
        ],
        ['Created', <ExactAndRelativeTime key="created" at={endpoint.created_at} />],
      ]}
    />
  )
}
