import { Alert, Button, Group, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import type { Project, Usage } from '../../api/operations.gen.ts'
import { useAnswer, useOne } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Badge, toneOfScore } from '../../components/badge.tsx'
import { DayChart } from '../../components/day-chart.tsx'
import { DescriptionList } from '../../components/description-list.tsx'
import { To } from '../../components/link.tsx'
import { ExactTime, RelativeTime } from '../../components/relative-time.tsx'
import { bytes, Meter, number, percent, StatTile, StatTiles } from '../../components/stat-tiles.tsx'
import { QueryState } from '../../components/states.tsx'
import { holdQueue, releaseQueue } from './acts.tsx'
import { useProject } from './project-page.tsx'

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
      {project.is_locked && (
        <Alert color="red" title="This project is locked">
          <Text size="sm">Sending is blocked. Queued mail is held and fails after 7 days.</Text>
          <LockedBy projectId={project.id} />
        </Alert>
      )}
      <QueryState query={usage} rows={8}>
        {(used) => <MailStats project={project} usage={used} />}
      </QueryState>
      <SimpleGrid cols={{ base: 1, md: 3 }} spacing="xl">
        <QueryState query={usage}>{(used) => <Limits usage={used} />}</QueryState>
        <PlanAndOwner project={project} />
        <Queue project={project} />
      </SimpleGrid>
    </Stack>
  )
}

/** Who locked the project, when and why, from the audit log. */
function LockedBy({ projectId }: { projectId: number }) {
  const query = {
    project_id: projectId,
    operation: 'projects.edit' as const,
    resource: `project:${projectId}`,
    limit: 200,
  }
  const edits = useAnswer('audit.list', { query })
  const lock = edits.data?.data.find(({ before, after }) => after?.['is_locked'] && !before?.['is_locked'])
  const isUser = lock?.actor_kind === 'person'
  const actor = useOne('users.show', { id: lock?.actor.id ?? 0 }, { isEnabled: isUser })
  if (!lock) return null
  const name = actor.data?.data.name || lock.actor.email || `user ${lock.actor.id}`
  return (
    <Text size="sm" mt={4} style={{ overflowWrap: 'anywhere' }}>
      Locked by {isUser ? name : 'an operator on the command line'} on <ExactTime at={lock.at} /> (
      <RelativeTime at={lock.at} />
      ). {lock.reason && <>Reason: {lock.reason} </>}
      <To fz="inherit" to="/audit/$id" params={{ id: String(lock.id) }}>
        View in audit
      </To>
    </Text>
  )
}

function MailStats({ project, usage }: { project: Project; usage: Usage }) {
  const days = usage.days.toReversed()
  const sum = (field: keyof Usage['days'][number]) =>
    days.reduce((total, day) => total + Number(day[field]), 0)
  const sent = sum('sent')
  const rate = (count: number, warn: number, bad: number) =>
    sent === 0 ? undefined : count / sent >= bad ? 'bad' : count / sent >= warn ? 'warn' : undefined
  const values = (field: 'accepted' | 'delivered' | 'bounced' | 'complained') => days.map((day) => day[field])
  return (
    <>
      <StatTiles>
        <StatTile
          label="Score"
          value={project.reputation_score}
          tone={toneOfScore(project.reputation_score)}
          note="of 100"
        />
        {/* Above these rates, large mailbox providers start rejecting a sender's mail. */}
        <StatTile
          label="Bounced"
          value={percent(sum('bounced'), sent)}
          tone={rate(sum('bounced'), 0.02, 0.05)}
          note={`${number(sum('bounced'))} in 30 days · ${number(project.bounced)} total`}
        />
        <StatTile
          label="Complained"
          value={percent(sum('complained'), sent)}
          tone={rate(sum('complained'), 0.001, 0.003)}
          note={`${number(sum('complained'))} in 30 days · ${number(project.complained)} total`}
        />
        <StatTile
          label="Failed"
          value={percent(sum('failed'), sent)}
          note={`${number(sum('failed'))} in 30 days · ${number(project.failed)} total`}
        />
        <StatTile label="Sent" value={number(sent)} note="in 30 days" />
      </StatTiles>
      <DayChart
        title="Messages per day"
        days={days.map(({ day }) => day)}
        series={[
          { label: 'Accepted', colour: '--postern-accepted', values: values('accepted') },
          { label: 'Delivered', colour: '--postern-delivered', values: values('delivered') },
          { label: 'Bounced', colour: '--postern-bounced', values: values('bounced') },
          { label: 'Complained', colour: '--postern-complained', values: values('complained') },
        ]}
      />
    </>
  )
}

function Limits({ usage }: { usage: Usage }) {
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
    </section>
  )
}

/** The server counts up to 10,000; counting further would be slow. */
const upTo = (count: number): string => (count > 10_000 ? 'more than 10,000' : number(count))

function Queue({ project }: { project: Project }) {
  const start = useAct()
  const query = useAnswer('queue.show', { path: { project_id: project.id } }, { pollMs: 10_000 })
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2}>Queue</Title>
        {query.data && (
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => start(query.data.is_held ? releaseQueue(project) : holdQueue(project))}
          >
            {query.data.is_held ? 'Release' : 'Hold'}
          </Button>
        )}
      </Group>
      <QueryState query={query}>
        {({ is_held, held_at, waiting, scheduled, leaving, awaiting }) => (
          <>
            {is_held && (
              <Text size="sm" mb="xs">
                <Badge tone="warn">held</Badge> <RelativeTime at={held_at} />
              </Text>
            )}
            <DescriptionList
              items={[
                ['Waiting', upTo(waiting)],
                ['Scheduled', upTo(scheduled)],
                ['Sending', upTo(leaving)],
                ['Awaiting delivery report', upTo(awaiting)],
              ]}
            />
          </>
        )}
      </QueryState>
    </section>
  )
}
