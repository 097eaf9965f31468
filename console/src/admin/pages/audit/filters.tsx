import { Select } from '@mantine/core'
import { DayRange } from '../../../components/day-range.tsx'
import { ExactInput } from '../../../components/exact-input.tsx'
import { countOf, FilterBar } from '../../../components/filter-bar.tsx'
import { ProjectSelect } from '../../components/project-select.tsx'
import { UserSelect } from '../../components/user-select.tsx'
import { auditedOperations, auditedResources } from './sentences.ts'
import type { AuditSearch } from './timeline.tsx'

/** Filters of the audit log, kept in the URL. */
export function Filters({
  search,
  setFilter,
  hasProject = false,
}: {
  search: AuditSearch
  setFilter: (part: Partial<AuditSearch>) => void
  /** Whether to show the project filter. */
  hasProject?: boolean
}) {
  const [kind = null, id] = search.resource?.split(':') ?? []
  const resourceOf = (type: string | null, its: string | undefined) =>
    type === null ? undefined : its ? `${type}:${its}` : type
  return (
    <FilterBar
      count={countOf(
        search.project_id,
        search.actor,
        search.operation,
        search.resource,
        search.from,
        search.to,
      )}
    >
      {hasProject && (
        <ProjectSelect
          value={search.project_id ?? null}
          onChange={(value) => setFilter({ project_id: value ?? undefined })}
          w={190}
        />
      )}
      <UserSelect
        label="Actor"
        value={search.actor ?? null}
        onChange={(value) => setFilter({ actor: value ?? undefined })}
        isFilter
        w={200}
      />
      <Select
        label="Operation"
        value={search.operation ?? null}
        onChange={(value) => setFilter({ operation: value ?? undefined })}
        data={auditedOperations}
        placeholder="Any"
        searchable
        clearable
        w={180}
      />
      <Select
        label="Resource"
        value={kind}
        onChange={(value) => setFilter({ resource: resourceOf(value, undefined) })}
        data={auditedResources.map((value) => ({ value, label: value.replaceAll('_', ' ') }))}
        placeholder="Any"
        clearable
        w={130}
      />
      {kind !== null && (
        <ExactInput
          label={`ID of ${kind.replaceAll('_', ' ')}`}
          placeholder="ID"
          value={id}
          onCommit={(its) => setFilter({ resource: resourceOf(kind, its?.replace(/[^0-9A-Za-z-]/g, '')) })}
          maxLength={50}
          w={110}
        />
      )}
      <DayRange value={{ from: search.from, to: search.to }} onChange={setFilter} />
    </FilterBar>
  )
}
