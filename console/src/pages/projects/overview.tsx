import { Alert, Button, Group, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import type { Project, Usage } from '../../api/operations.gen.ts'
import { useAnswer, useOne } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Badge, toneOfScore } from '../../components/badge.tsx'
import { DayChart } from '../../components/day-chart.tsx'
import { Facts } from '../../components/facts.tsx'
import { bytes, Figure, Figures, Meter, number, percent } from '../../components/figures.tsx'
import { To } from '../../components/link.tsx'
import { Asked } from '../../components/states.tsx'
import { When } from '../../components/when.tsx'
import { holdQueue, releaseQueue } from './acts.tsx'
import { useProject } from './project-page.tsx'

export function Overview() {
  const query = useProject()
  // Of another project, nothing of the last one stays in sight.
  return <Asked query={query}>{({ data }) => <OverviewOf key={data.id} project={data} />}</Asked>
}

function OverviewOf({ project }: { project: Project }) {
  const path = { project_id: project.id }
  const usage = useAnswer('usage.show', { path })
  return (
    <Stack gap="xl">
      {project.is_locked && (
        <Alert color="red" title="This project is locked">
          It sends nothing. Its mail is held, at most 7 days, and then fails.
        </Alert>
      )}
      <Asked query={usage} rows={8}>
        {(used) => <MailFigures project={project} usage={used} />}
      </Asked>
      <SimpleGrid cols={{ base: 1, md: 3 }} spacing="xl">
        <Asked query={usage}>{(used) => <Limits usage={used} />}</Asked>
        <PlanInForce project={project} />
        <Queue project={project} />
      </SimpleGrid>
    </Stack>
  )
}

function MailFigures({ project, usage }: { project: Project; usage: Usage }) {
  const days = usage.days.toReversed()
  const sum = (field: keyof Usage['days'][number]) =>
    days.reduce((total, day) => total + Number(day[field]), 0)
  const sent = sum('sent')
  const rate = (count: number, warn: number, bad: number) =>
    sent === 0 ? undefined : count / sent >= bad ? 'bad' : count / sent >= warn ? 'warn' : undefined
  const values = (field: 'accepted' | 'delivered' | 'bounced' | 'complained') => days.map((day) => day[field])
  return (
    <>
      <Figures>
        <Figure
          label="Score"
          value={project.reputation_score}
          tone={toneOfScore(project.reputation_score)}
          note="of 100"
        />
        {/* Above these shares, large mailbox providers begin to refuse a sender. */}
        <Figure
          label="Bounced"
          value={percent(sum('bounced'), sent)}
          tone={rate(sum('bounced'), 0.02, 0.05)}
          note={`${number(sum('bounced'))} in 30 days, ${number(project.bounced)} in all`}
        />
        <Figure
          label="Complained"
          value={percent(sum('complained'), sent)}
          tone={rate(sum('complained'), 0.001, 0.003)}
          note={`${number(sum('complained'))} in 30 days, ${number(project.complained)} in all`}
        />
        <Figure
          label="Failed"
          value={percent(sum('failed'), sent)}
          note={`${number(sum('failed'))} in 30 days, ${number(project.failed)} in all`}
        />
        <Figure label="Sent" value={number(sent)} note="in 30 days" />
      </Figures>
      <DayChart
        title="Mail by day"
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
      <Meter label="Mails today" used={usage.day.accepted} limit={usage.day.limit} />
      <Meter label="Mails this month" used={usage.month.accepted} limit={usage.month.limit} />
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

function PlanInForce({ project }: { project: Project }) {
  const { plan, admin_plan_id, admin_subscription_status, billing_subscription_status } = project
  const status = admin_subscription_status ?? billing_subscription_status
  const owner = useOne('users.show', { id: project.user_id })
  return (
    <section>
      <Title order={2} mb="sm">
        Plan and owner
      </Title>
      <Facts
        facts={[
          [
            'Plan in force',
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
          ['Billing id', project.billing_subscription_id ?? 'none'],
          ['Our own MTAs', project.allow_service_mta ? 'may be used' : 'may not be used'],
          [
            'Owner',
            <To key="owner" to="/users" search={{ q: owner.data?.data.email }}>
              {owner.data?.data.email ?? `user ${project.user_id}`}
            </To>,
          ],
          ['Created', <When key="created" at={project.created_at} />],
        ]}
      />
    </section>
  )
}

/** Counts stop at 10,000: to count on would take longer than to look. */
const upTo = (count: number): string => (count > 10_000 ? 'more than 10,000' : number(count))

function Queue({ project }: { project: Project }) {
  const start = useAct()
  const query = useAnswer('queue.show', { path: { project_id: project.id } }, { everyMs: 10_000 })
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
      <Asked query={query}>
        {({ is_held, held_at, waiting, scheduled, leaving, awaiting }) => (
          <>
            {is_held && (
              <Text size="sm" mb="xs">
                <Badge tone="warn">held</Badge> <When at={held_at} />
              </Text>
            )}
            <Facts
              facts={[
                ['Waiting', upTo(waiting)],
                ['Scheduled', upTo(scheduled)],
                ['Leaving now', upTo(leaving)],
                ['With the provider, no news yet', upTo(awaiting)],
              ]}
            />
          </>
        )}
      </Asked>
    </section>
  )
}
