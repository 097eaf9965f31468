import { Button, Group, NumberInput, Select } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Project } from '../../api/operations.gen.ts'
import { useAnswer, usePage } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Badge, toneOfScore } from '../../components/badge.tsx'
import { number } from '../../components/figures.tsx'
import { To } from '../../components/link.tsx'
import { type Column, List } from '../../components/list.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { SearchField } from '../../components/search-field.tsx'
import { Empty } from '../../components/states.tsx'
import { When } from '../../components/when.tsx'
import { createProject } from './acts.tsx'

const route = getRouteApi('/projects')

const columns: Column<Project>[] = [
  {
    title: 'Project',
    cell: ({ id, name, is_locked }) => (
      <Group gap="xs" wrap="nowrap">
        <To to="/projects/$projectId" params={{ projectId: String(id) }}>
          {name}
        </To>
        {is_locked && <Badge tone="bad">locked</Badge>}
      </Group>
    ),
  },
  {
    title: 'Score',
    isNumber: true,
    cell: ({ reputation_score }) => <Badge tone={toneOfScore(reputation_score)}>{reputation_score}</Badge>,
  },
  { title: 'Bounced', isNumber: true, isExtra: true, cell: ({ bounced }) => number(bounced) },
  { title: 'Complained', isNumber: true, isExtra: true, cell: ({ complained }) => number(complained) },
  {
    title: 'Plan',
    isExtra: true,
    cell: ({ plan, admin_plan_id }) => (
      <>
        {plan.name}
        {admin_plan_id !== null && ' (override)'}
      </>
    ),
  },
  { title: 'Created', isExtra: true, cell: ({ created_at }) => <When at={created_at} /> },
]

const sorts = {
  '-id': 'Newest first',
  id: 'Oldest first',
  name: 'By name',
  '-name': 'By name, backwards',
  reputation_score: 'Worst score first',
  '-reputation_score': 'Best score first',
}

/** Where an operator begins the day: whoever still sends, and should perhaps not. */
const trouble = { sort: 'reputation_score', max_score: 59, locked: false } as const

type Search = ReturnType<typeof route.useSearch>

export function ProjectsPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const query = usePage('projects.list', { query: search })
  const create = () =>
    start(
      createProject(
        (made) => void navigate({ to: '/projects/$projectId', params: { projectId: String(made.id) } }),
      ),
    )
  const { sort: _, ...narrowed } = search
  return (
    <>
      <PageHead title="Projects">
        <Button onClick={create}>New project</Button>
      </PageHead>
      <Filters search={search} />
      <List
        label="Projects"
        query={query}
        columns={columns}
        cursor={search.cursor}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
        empty={
          Object.keys(narrowed).length > 0 ? (
            <Empty title="No project fits">Search for less, or take a filter away.</Empty>
          ) : (
            <Empty title="There is no project yet">Make the first with “New project”.</Empty>
          )
        }
      />
    </>
  )
}

function Filters({ search }: { search: Search }) {
  const navigate = route.useNavigate()
  const plans = useAnswer('plans.list', { query: { limit: 200 } })

  /** Another question begins at its first page, and takes the place of the last one in the history. */
  const ask = (part: Partial<Search>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })

  const isTrouble = Object.entries(trouble).every(([name, value]) => search[name as keyof Search] === value)

  return (
    <Group align="flex-end" mb="md" gap="sm" role="search">
      <SearchField
        placeholder="Part of a name (press /)"
        value={search.q}
        onChange={(q) => ask({ q })}
        w={240}
      />
      <YesOrNo
        label="Lock"
        yes="Locked"
        no="Not locked"
        value={search.locked}
        onChange={(locked) => ask({ locked })}
      />
      <Select
        label="Plan in force"
        value={search.plan_id === undefined ? null : String(search.plan_id)}
        onChange={(value) => ask({ plan_id: value === null ? undefined : Number(value) })}
        data={(plans.data?.data ?? []).map(({ id, name }) => ({ value: String(id), label: name }))}
        placeholder="Any"
        clearable
        w={150}
      />
      <Score label="Score at least" value={search.min_score} onChange={(min_score) => ask({ min_score })} />
      <Score label="Score at most" value={search.max_score} onChange={(max_score) => ask({ max_score })} />
      <YesOrNo
        label="Limits"
        yes="Over a limit"
        no="Within"
        value={search.over_limit}
        onChange={(over_limit) => ask({ over_limit })}
      />
      <Select
        label="Order"
        value={search.sort ?? '-id'}
        onChange={(value) => ask({ sort: value === '-id' ? undefined : (value as keyof typeof sorts) })}
        data={Object.entries(sorts).map(([value, label]) => ({ value, label }))}
        allowDeselect={false}
        w={170}
      />
      <Button
        variant={isTrouble ? 'filled' : 'default'}
        onClick={() => void navigate({ search: isTrouble ? {} : trouble })}
        aria-pressed={isTrouble}
      >
        In trouble
      </Button>
    </Group>
  )
}

interface Filter<T> {
  label: string
  value: T | undefined
  onChange: (value: T | undefined) => void
}

function YesOrNo({ label, yes, no, value, onChange }: Filter<boolean> & { yes: string; no: string }) {
  return (
    <Select
      label={label}
      value={value === undefined ? null : String(value)}
      onChange={(chosen) => onChange(chosen === null ? undefined : chosen === 'true')}
      data={[
        { value: 'true', label: yes },
        { value: 'false', label: no },
      ]}
      placeholder="Any"
      clearable
      w={130}
    />
  )
}

function Score({ label, value, onChange }: Filter<number>) {
  return (
    <NumberInput
      label={label}
      value={value ?? ''}
      // Half a number, such as a lone minus, is a text.
      onChange={(typed) => onChange(typeof typed === 'number' ? typed : undefined)}
      min={0}
      max={100}
      allowDecimal={false}
      allowNegative={false}
      w={120}
    />
  )
}
