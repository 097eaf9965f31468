import { Group, SimpleGrid, Stack, Title } from '@mantine/core'
import type { Project } from '../../../api/operations.gen.ts'
import { useAnswer, useOne } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { DescriptionList } from '../../../components/description-list.tsx'
import { To } from '../../../components/link.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { QueryState } from '../../../components/states.tsx'
import { Limits } from '../../../resources/usage/limits.tsx'
import { InForce } from '../interventions/in-force.tsx'
import { Notes } from '../notes/notes.tsx'
import { Queue } from '../queue/queue.tsx'
import { MailStats } from './mail-stats.tsx'
import { useProject } from './project-page.tsx'
import { TemporaryOverrides } from './temporary-overrides.tsx'

export function Overview() {
  const query = useProject()
  // The key resets the component's state when the project changes.
  return <QueryState query={query}>{({ data }) => <OverviewOf key={data.id} project={data} />}</QueryState>
}

function OverviewOf({ project }: { project: Project }) {
  const path = { project_id: project.id }
  const usage = useAnswer('usage.show', { path })
  return (
    <Stack gap="xl">
      <InForce projectId={project.id} atMost={3} />
      <QueryState query={usage} rows={8}>
        {(used) => <MailStats project={project} usage={used} />}
      </QueryState>
      <Notes projectId={project.id} />
      <SimpleGrid cols={{ base: 1, md: 3 }} spacing="xl">
        <QueryState query={usage}>{(used) => <Limits usage={used} />}</QueryState>
        <PlanAndOwner project={project} />
        <Queue project={project} isOverview />
      </SimpleGrid>
    </Stack>
  )
}

function PlanAndOwner({ project }: { project: Project }) {
  const { plan, admin_plan_id, admin_subscription_status, billing_subscription_status } = project
  const status = admin_subscription_status ?? billing_subscription_status
  const owner = useOne('users.show', { id: project.user_id })
  return (
    <section>
      <Title order={2} mb="sm">
        Plan and owner
      </Title>
      <DescriptionList
        items={[
          [
            'Current plan',
            <Group gap="xs" key="plan">
              {plan.name}
              <Badge tone={admin_plan_id === null ? 'calm' : 'warn'}>
                {admin_plan_id === null ? 'from billing' : 'override'}
              </Badge>
            </Group>,
          ],
          [
            'Subscription',
            status === null ? (
              'not billed'
            ) : (
              <Group gap="xs" key="status">
                {status.replaceAll('_', ' ')}
                <Badge tone={admin_subscription_status === null ? 'calm' : 'warn'}>
                  {admin_subscription_status === null ? 'from billing' : 'override'}
                </Badge>
              </Group>
            ),
          ],
          ['Billing ID', project.billing_subscription_id ?? 'none'],
          ['Shared mail servers', project.allow_service_mta ? 'allowed' : 'not allowed'],
          [
            'Owner',
            <To key="owner" to="/users" search={{ q: owner.data?.data.email }}>
              {owner.data?.data.email ?? `user ${project.user_id}`}
            </To>,
          ],
          ['Created', <RelativeTime key="created" at={project.created_at} />],
        ]}
      />
      <TemporaryOverrides projectId={project.id} />
    </section>
  )
}
