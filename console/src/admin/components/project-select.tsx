import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useState } from 'react'
import { useAnswer, useOne } from '../../api/queries.ts'

/**
 * Filters a list by project. The project is searched by part of its name; 0 selects entries that belong to no project.
 */
export function ProjectSelect({
  value,
  onChange,
  w,
}: {
  value: number | null
  onChange: (id: number | null) => void
  w?: number
}) {
  const [typed, setTyped] = useState('')
  const [q] = useDebouncedValue(typed, 150)
  const found = useAnswer('projects.list', { query: { limit: 10, ...(q && { q }) } })
  const chosen = useOne('projects.show', { project_id: value ?? 0 }, { isEnabled: Boolean(value) })
  const names = new Map((found.data?.data ?? []).map(({ id, name }) => [id, name]))
  if (chosen.data) names.set(chosen.data.data.id, chosen.data.data.name)
  return (
    <Select
      label="Project"
      placeholder="Any"
      value={value === null ? null : String(value)}
      onChange={(id) => onChange(id === null ? null : Number(id))}
      searchValue={typed}
      onSearchChange={setTyped}
      data={[
        { value: '0', label: 'No project' },
        // Names are not unique.
        ...[...names].map(([id, name]) => ({ value: String(id), label: `${name} (${id})` })),
      ]}
      // The server has already filtered.
      filter={({ options }) => options}
      nothingFoundMessage="No matching projects"
      searchable
      clearable
      w={w}
    />
  )
}
