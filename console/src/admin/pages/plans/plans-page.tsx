import { Anchor, Button, Group, Select, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Plan } from '../../../api/operations.gen.ts'
import { usePage } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { Can } from '../../../components/can.tsx'
import { FilterBar } from '../../../components/filter-bar.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { number } from '../../../components/numbers.ts'
import { PageHead } from '../../../components/page-head.tsx'
import { Empty } from '../../../components/states.tsx'
import { useAct } from '../../act/use-act.tsx'
import { useActOn } from '../../act/use-act-on.ts'
import { createPlan, editPlan, levels } from './acts.tsx'

const route = getRouteApi('/plans')

const price = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })

const columnsOf = (edit: (plan: Plan) => void): Column<Plan>[] => [
  {
    title: 'Plan',
    cell: (plan) => (
      <>
        <Group gap="xs">
          <Can change="plans.edit" otherwise={plan.name}>
            <Anchor component="button" size="md" onClick={() => edit(plan)}>
              {plan.name}
            </Anchor>
          </Can>
          {!plan.is_active && <Badge>inactive</Badge>}
        </Group>
        {plan.description && (
          <Text size="sm" c="dimmed" lineClamp={2}>
            {plan.description}
          </Text>
        )}
      </>
    ),
  },
  { title: 'Price', isNumber: true, cell: (plan) => price.format(plan.price) },
  {
    title: 'Messages per day',
    isNumber: true,
    isExtra: true,
    cell: (plan) => number(plan.max_mails_per_day),
  },
  {
    title: 'Messages per month',
    isNumber: true,
    isExtra: true,
    cell: (plan) => number(plan.max_mails_per_month),
  },
  { title: 'Domains', isNumber: true, isExtra: true, cell: (plan) => number(plan.max_domains) },
  { title: 'Members', isNumber: true, isExtra: true, cell: (plan) => number(plan.max_users) },
  { title: 'Support', isExtra: true, cell: (plan) => levels[plan.support_level] },
  {
    title: 'Used by',
    cell: ({ id, name }) => (
      <To to="/projects" search={{ plan_id: id }} aria-label={`Projects on the plan ${name}`}>
        Projects
      </To>
    ),
  },
]

export function PlansPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const actOn = useActOn()
  const query = usePage('plans.list', { query: search })
  const columns = columnsOf(({ id }) => actOn('plans.show', { id }, editPlan))
  return (
    <>
      <PageHead title="Plans">
        <Can change="plans.create">
          <Button onClick={() => start(createPlan)}>New plan</Button>
        </Can>
      </PageHead>
      <FilterBar
        search={
          <Select
            label="Availability"
            value={search.is_active === undefined ? null : String(search.is_active)}
            onChange={(value) =>
              void navigate({
                search: { is_active: value === null ? undefined : value === 'true' },
                replace: true,
              })
            }
            data={[
              { value: 'true', label: 'Available' },
              { value: 'false', label: 'Not available' },
            ]}
            placeholder="Any"
            clearable
            w={180}
          />
        }
      />
      <List
        label="Plans"
        query={query}
        columns={columns}
        cursor={search.cursor}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
        empty={
          <Empty title="No plans">
            A plan limits how much a project can send. Every project needs one. Create the first one with “New
            plan”.
          </Empty>
        }
      />
    </>
  )
}
