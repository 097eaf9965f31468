import { Button, Checkbox, Group, NumberInput, Select } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Project, ProjectVolume } from '../../../api/operations.gen.ts'
import { useAnswer, usePage } from '../../../api/queries.ts'
import { Badge, toneOfScore } from '../../../components/badge.tsx'
import { Can, useCan } from '../../../components/can.tsx'
import { countOf, FilterBar } from '../../../components/filter-bar.tsx'
import { To } from '../../../components/link.tsx'
import { type Column, List } from '../../../components/list.tsx'
import { number } from '../../../components/numbers.ts'
import { PageHead } from '../../../components/page-head.tsx'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { SearchField } from '../../../components/search-field.tsx'
import { Empty } from '../../../components/states.tsx'
import { UnreachableCells } from '../../../components/unreachable-cells.tsx'
import { Rate } from '../../../resources/usage/rate.tsx'
import { useAct } from '../../act/use-act.tsx'
import { SelectionBar } from '../bulk/selection-bar.tsx'
import { type ProjectSelection, useSelection } from '../bulk/use-selection.ts'
import { createProject } from './acts.tsx'

const route = getRouteApi('/projects')

/** A page of the list has at most 25 projects. */
type VolumeOf = (id: number) => ProjectVolume | undefined

const columnsOf = (
  selection: ProjectSelection,
  isSelectable: boolean,
  volumeOf: VolumeOf,
): Column<Project>[] => [
  {
    title: 'Project',
    sort: 'name',
    cell: ({ id, name, is_locked }) => (
      <Group gap="xs" wrap="nowrap">
        {isSelectable && (
          <Checkbox
            size="xs"
            checked={selection.has(id)}
            disabled={selection.isAll}
            onChange={() => selection.toggle(id)}
            aria-label={`Select ${name}`}
          />
        )}
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
    sort: 'reputation_score',
    cell: ({ reputation_score }) => <Badge tone={toneOfScore(reputation_score)}>{reputation_score}</Badge>,
  },
  { title: 'Sent', isNumber: true, cell: ({ id }) => shownCount(volumeOf(id)?.sent) },
  {
    title: 'Bounced',
    isNumber: true,
    isExtra: true,
    cell: ({ id }) => <Rate kind="bounced" rate={volumeOf(id)?.bounce_rate} />,
  },
  {
    title: 'Complained',
    isNumber: true,
    isExtra: true,
    cell: ({ id }) => <Rate kind="complained" rate={volumeOf(id)?.complaint_rate} />,
  },
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
  { title: 'Created', isExtra: true, sort: 'id', cell: ({ created_at }) => <RelativeTime at={created_at} /> },
]

const unknownFigure = '–'

const shownCount = (count: number | undefined) => (count === undefined ? unknownFigure : number(count))

const ranges = { '24h': '24 hours', '7d': '7 days', '30d': '30 days' }
type Range = keyof typeof ranges
const defaultRange: Range = '7d'

const newestFirst = '-id'

/** Projects that are still sending and have a low score. */
const needsAttention = { sort: 'reputation_score', max_score: 59, locked: false } as const

type Search = ReturnType<typeof route.useSearch>

export function ProjectsPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const start = useAct()
  const { range = defaultRange, ...listed } = search
  const query = usePage('projects.list', { query: listed })
  const ids = (query.data?.data ?? []).map(({ id }) => id).join(',')
  const volumes = useAnswer('projects.volumes', { query: { ids, range } }, { isEnabled: ids !== '' })
  const volumeById = new Map(volumes.data?.data.map((volume) => [volume.project_id, volume]))
  const create = () =>
    start(
      createProject(
        (made) => void navigate({ to: '/projects/$projectId', params: { projectId: String(made.id) } }),
      ),
    )
  const { sort, ...filters } = listed
  const { cursor: _, ...filter } = filters
  const selection = useSelection(filter)
  const can = useCan()
  return (
    <>
      <PageHead title="Projects">
        <Can change="projects.create">
          <Button onClick={create}>New project</Button>
        </Can>
      </PageHead>
      <Filters search={search} />
      <UnreachableCells names={volumes.data?.unreachable_cells ?? []} />
      <SelectionBar selection={selection} shown={query.data?.data ?? []} />
      <List
        label="Projects"
        query={query}
        columns={columnsOf(selection, can('bulk.create'), (id) => volumeById.get(id))}
        sorting={{
          value: sort ?? newestFirst,
          onChange: (value) =>
            void navigate({
              search: {
                ...search,
                sort: value === newestFirst ? undefined : (value as typeof sort),
                cursor: undefined,
              },
            }),
        }}
        cursor={search.cursor}
        setCursor={(cursor) => void navigate({ search: { ...search, cursor } })}
        empty={
          Object.keys(filters).length > 0 ? (
            <Empty title="No matching projects">Try a shorter search or clear a filter.</Empty>
          ) : (
            <Empty title="No projects yet">Create the first one with “New project”.</Empty>
          )
        }
      />
    </>
  )
}

function Filters({ search }: { search: Search }) {
  const navigate = route.useNavigate()
  const plans = useAnswer('plans.list', { query: { limit: 200 } })

  /** Changing a filter returns to the first page and replaces the current entry in the browser history. */
  const setFilter = (part: Partial<Search>) =>
    void navigate({ search: { ...search, cursor: undefined, ...part }, replace: true })

  const isAttention = Object.entries(needsAttention).every(
    ([name, value]) => search[name as keyof Search] === value,
  )

  return (
    <FilterBar
      count={countOf(search.locked, search.plan_id, search.min_score, search.max_score, search.over_limit)}
      search={
        <SearchField
          placeholder="Part of a name"
          value={search.q}
          onChange={(q) => setFilter({ q })}
          w={240}
        />
      }
    >
      <YesOrNo
        label="Lock"
        yes="Locked"
        no="Not locked"
        value={search.locked}
        onChange={(locked) => setFilter({ locked })}
      />
      <Select
        label="Plan"
        value={search.plan_id === undefined ? null : String(search.plan_id)}
        onChange={(value) => setFilter({ plan_id: value === null ? undefined : Number(value) })}
        data={(plans.data?.data ?? []).map(({ id, name }) => ({ value: String(id), label: name }))}
        placeholder="Any"
        clearable
        w={150}
      />
      <Score label="Min. score" value={search.min_score} onChange={(min_score) => setFilter({ min_score })} />
      <Score label="Max. score" value={search.max_score} onChange={(max_score) => setFilter({ max_score })} />
      <YesOrNo
        label="Limits"
        yes="Over a limit"
        no="Within limits"
        value={search.over_limit}
        onChange={(over_limit) => setFilter({ over_limit })}
      />
      <Select
        label="Figures of"
        value={search.range ?? defaultRange}
        onChange={(value) => setFilter({ range: value === defaultRange ? undefined : (value as Range) })}
        data={Object.entries(ranges).map(([value, label]) => ({ value, label }))}
        allowDeselect={false}
        w={130}
      />
      <Button
        variant={isAttention ? 'filled' : 'default'}
        onClick={() => void navigate({ search: isAttention ? {} : needsAttention })}
        aria-pressed={isAttention}
      >
        Needs attention
      </Button>
    </FilterBar>
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
      // An incomplete number, such as a lone minus, is a string.
      onChange={(typed) => onChange(typeof typed === 'number' ? typed : undefined)}
      min={0}
      max={100}
      allowDecimal={false}
      allowNegative={false}
      w={120}
    />
  )
}
