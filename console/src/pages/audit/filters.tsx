import { Group, Select, TextInput } from '@mantine/core'
import { ExactInput } from '../../components/exact-input.tsx'
import { ProjectSelect } from '../../components/project-select.tsx'
import { UserSelect } from '../../components/user-select.tsx'
import { auditedOperations, auditedResources } from './sentences.ts'
import type { AuditSearch } from './timeline.tsx'

/** Narrows the timeline. What is chosen stands in the address. */
export function Filters({
  search,
  ask,
  hasProject = false,
}: {
  search: AuditSearch
  ask: (part: Partial<AuditSearch>) => void
  /** Whether a project can be chosen. */
  hasProject?: boolean
}) {
  const [kind = null, id] = search.resource?.split(':') ?? []
  const resourceOf = (type: string | null, its: string | undefined) =>
    type === null ? undefined : its ? `${type}:${its}` : type
  return (
    <Group align="flex-end" mb="md" gap="sm" role="search">
      {hasProject && (
        <ProjectSelect
          value={search.project_id ?? null}
          onChange={(value) => ask({ project_id: value ?? undefined })}
          w={190}
        />
      )}
      <UserSelect
        label="Who"
        value={search.actor ?? null}
        onChange={(value) => ask({ actor: value ?? undefined })}
        isFilter
        w={200}
      />
      <Select
        label="Operation"
        value={search.operation ?? null}
        onChange={(value) => ask({ operation: value ?? undefined })}
        data={auditedOperations}
        placeholder="Any"
        searchable
        clearable
        w={180}
      />
      <Select
        label="On what"
        value={kind}
        onChange={(value) => ask({ resource: resourceOf(value, undefined) })}
        data={auditedResources.map((value) => ({ value, label: value.replaceAll('_', ' ') }))}
        placeholder="Anything"
        clearable
        w={130}
      />
      {kind !== null && (
        <ExactInput
          label={`Which ${kind.replaceAll('_', ' ')}`}
          placeholder="Its id"
          value={id}
          onSettle={(its) => ask({ resource: resourceOf(kind, its?.replace(/[^0-9A-Za-z-]/g, '')) })}
          maxLength={50}
          w={110}
        />
      )}
      <Day label="From" value={search.from} onChange={(from) => ask({ from })} />
      <Day label="To" value={search.to} onChange={(to) => ask({ to })} />
    </Group>
  )
}

/** A day in UTC, as all times in the console. */
function Day({
  label,
  value,
  onChange,
}: {
  label: string
  value: string | undefined
  onChange: (day: string | undefined) => void
}) {
  return (
    <TextInput
      type="date"
      label={label}
      value={value ?? ''}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
      w={155}
    />
  )
}
