import { Alert, Button, Group, Menu, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Answer } from '../../../api/client.ts'
import type { Policy } from '../../../api/operations.gen.ts'
import { useMany, useOne } from '../../../api/queries.ts'
import { useCan } from '../../../components/can.tsx'
import { DescriptionList } from '../../../components/description-list.tsx'
import { HeadActions } from '../../../components/head-actions.tsx'
import { To } from '../../../components/link.tsx'
import { duration } from '../../../components/numbers.ts'
import { PageHead } from '../../../components/page-head.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { QueryState } from '../../../components/states.tsx'
import { useAct } from '../../act/use-act.tsx'
import { buttonOf, deletePolicy, setMode } from './acts.ts'
import { BacktestResult } from './backtest.tsx'
import { FiringsOfPolicy } from './firings.tsx'
import { ModeBadge, TrippedBadge } from './mode-badge.tsx'
import { backtestDays, useBacktest } from './policies.ts'
import { conditionOf, type Mode, modes, reactionOf, scopeOf } from './sentences.ts'

const route = getRouteApi('/policies/$id')

/** The breaker can change the policy. */
const pollMs = 60_000

export function PolicyPage() {
  const query = useOne('policies.show', { id: Number(route.useParams().id) }, { pollMs })
  return (
    <QueryState query={query} rows={10}>
      {(loaded) => <PolicyOf key={loaded.data.id} loaded={loaded} />}
    </QueryState>
  )
}

function PolicyOf({ loaded }: { loaded: Answer<Policy> }) {
  const policy = loaded.data
  const search = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <>
      <Head loaded={loaded} />
      <Stack gap="xl">
        {policy.tripped_at !== null && <Tripped loaded={loaded} trippedAt={policy.tripped_at} />}
        <Configuration policy={policy} />
        <section aria-label="Backtest">
          <Title order={2} mb="sm">
            Backtest of the last {backtestDays} days
          </Title>
          <QueryState query={useBacktest(policy)} rows={6}>
            {(backtest) => (
              <BacktestResult
                backtest={backtest}
                of={{ signal: policy.signal, kind: policy.intervention.kind }}
              />
            )}
          </QueryState>
        </section>
        <section aria-label="Recorded firings">
          <Title order={2} mb="sm">
            Recorded firings
          </Title>
          <FiringsOfPolicy
            policy={policy}
            cursor={search.cursor}
            setCursor={(cursor) => void navigate({ search: { cursor } })}
          />
        </section>
      </Stack>
    </>
  )
}

const allModes: Mode[] = ['off', 'shadow', 'enforce']

/** While the breaker is not reset, also a button for the mode that the policy has. */
const modesFor = ({ mode, tripped_at }: Policy): Mode[] =>
  allModes.filter((other) => other !== mode || tripped_at !== null)

function Head({ loaded }: { loaded: Answer<Policy> }) {
  const start = useAct()
  const can = useCan()
  const navigate = route.useNavigate()
  const { id, name, mode } = loaded.data
  const leave = () => void navigate({ to: '/policies' })
  return (
    <PageHead
      title={name}
      above={
        <>
          <To to="/policies">Policies</To> / {id}
        </>
      }
      beside={
        <>
          <ModeBadge mode={mode} />
          <TrippedBadge policy={loaded.data} />
        </>
      }
      below={modes[mode].effect}
    >
      {loaded.data.tripped_at === null && <ModeButtons loaded={loaded} />}
      <HeadActions
        of="policy"
        edit={
          can('policies.edit') &&
          (() => void navigate({ to: '/policies/$id/edit', params: { id: String(id) } }))
        }
      >
        <Menu.Item onClick={() => void navigate({ to: '/audit', search: { resource: `policy:${id}` } })}>
          Audit
        </Menu.Item>
        {can('policies.delete') && (
          <Menu.Item c="var(--postern-bad)" onClick={() => start(deletePolicy(loaded, leave))}>
            Delete policy
          </Menu.Item>
        )}
      </HeadActions>
    </PageHead>
  )
}

function ModeButtons({ loaded }: { loaded: Answer<Policy> }) {
  const start = useAct()
  const can = useCan()
  if (!can('policies.edit')) return null
  return modesFor(loaded.data).map((mode) => (
    <Button
      key={mode}
      variant={mode === 'enforce' ? 'outline' : 'default'}
      color={mode === 'enforce' ? 'red' : undefined}
      onClick={() => start(setMode(loaded, mode))}
    >
      {buttonOf(mode, loaded.data)}
    </Button>
  ))
}

function Tripped({ loaded, trippedAt }: { loaded: Answer<Policy>; trippedAt: string }) {
  return (
    <Alert color="red" title="The breaker of this policy tripped">
      <Stack gap="sm">
        <Text size="sm">
          On <ExactTime at={trippedAt} />, it reached its limit of projects per hour. Since then it only
          records firings. Many projects at the same time often mean that a receiver or a feedback source is
          broken. Review the firings below, then choose a mode.
        </Text>
        <Group gap="xs">
          <ModeButtons loaded={loaded} />
        </Group>
      </Stack>
    </Alert>
  )
}

function Configuration({ policy }: { policy: Policy }) {
  const { intervention, applies_to, cooldown_minutes, updated_at } = policy
  const plans = useMany(
    'plans.show',
    (applies_to.plan_ids ?? []).map((id) => ({ id })),
  )
  const left: [string, ReactNode][] = [
    ['Fires when', conditionOf(policy)],
    ['Intervention', reactionOf(intervention)],
    ['Public note', intervention.public_note ?? 'none'],
  ]
  const right: [string, ReactNode][] = [
    ['Applies to', scopeOf(applies_to, (wanted) => plans.find(({ id }) => id === wanted)?.name)],
    ['Cooldown', `${duration(cooldown_minutes)} per project`],
    ['Last changed', <ExactTime key="changed" at={updated_at} />],
  ]
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl" verticalSpacing={0}>
      <DescriptionList items={left} />
      <DescriptionList items={right} />
    </SimpleGrid>
  )
}
