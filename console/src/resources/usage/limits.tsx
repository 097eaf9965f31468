import { Title } from '@mantine/core'
import type { Usage } from '../../api/operations.gen.ts'
import { bytes, number } from '../../components/numbers.ts'
import { Meter } from '../../components/stat-tiles.tsx'

/** What the project used of its plan and of the installation's limits. */
export function Limits({ usage }: { usage: Usage }) {
  return (
    <section>
      <Title order={2} mb="sm">
        Usage
      </Title>
      <Meter label="Messages today" used={usage.day.accepted} limit={usage.day.limit} />
      <Meter label="Messages this month" used={usage.month.accepted} limit={usage.month.limit} />
      {usage.limits.map(({ name, used, allowed }) => (
        <Meter
          key={name}
          label={limitLabels[name] ?? name}
          used={used}
          limit={allowed}
          shown={name.includes('bytes') ? bytes : number}
        />
      ))}
    </section>
  )
}

const limitLabels: Record<string, string> = {
  max_domains: 'Domains',
  max_users: 'Members',
  max_endpoints: 'Endpoints',
  max_routes: 'Routes',
  max_api_keys: 'API keys',
  max_pending_invitations: 'Pending invitations',
  max_suppressions: 'Suppressed manually',
  max_bytes_per_day: 'Mail stored today',
  max_inbound_bytes_per_day: 'Inbound mail today',
  max_forwards_per_day: 'Forwarded today',
}
