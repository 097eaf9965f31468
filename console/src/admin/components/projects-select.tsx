import { MultiSelect } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useState } from 'react'
import { useAnswer, useMany } from '../../api/queries.ts'

/** Several projects, each searched by part of its name. */
export function ProjectsSelect({
  label,
  placeholder,
  value,
  onChange,
}: {
  label: string
  /** Shown while none is selected. */
  placeholder: string
  value: number[]
  onChange: (ids: number[]) => void
}) {
  const [typed, setTyped] = useState('')
  const [q] = useDebouncedValue(typed, 150)
  const found = useAnswer('projects.list', { query: { limit: 10, ...(q && { q }) } })
  const chosen = useMany(
    'projects.show',
    value.map((project_id) => ({ project_id })),
  )
  const names = new Map([...(found.data?.data ?? []), ...chosen].map(({ id, name }) => [id, name]))
  // A project that was deleted, or whose name is still loading.
  for (const id of value) if (!names.has(id)) names.set(id, 'project')
  return (
    <MultiSelect
      label={label}
      placeholder={value.length === 0 ? placeholder : ''}
      value={value.map(String)}
      onChange={(ids) => onChange(ids.map(Number))}
      searchValue={typed}
      onSearchChange={setTyped}
      // Names are not unique.
      data={[...names].map(([id, name]) => ({ value: String(id), label: `${name} (${id})` }))}
      // The server has already filtered.
      filter={({ options }) => options}
      nothingFoundMessage="No matching projects"
      searchable
      clearable
    />
  )
}
