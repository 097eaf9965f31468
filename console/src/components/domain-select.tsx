import { Select, type SelectProps } from '@mantine/core'
import { useAll } from '../api/queries.ts'

interface Chosen {
  id: number
  name: string
}

/** One of a project's domains. */
export function DomainSelect<Domain extends Chosen>({
  projectId,
  value,
  onChange,
  ...rest
}: {
  projectId: number
  value: Domain | null
  onChange: (domain: Chosen | null) => void
} & Omit<SelectProps, 'value' | 'onChange' | 'data'>) {
  const domains = useAll('domains.list', { project_id: projectId })
  // Until the list has loaded, the selected domain is the only option.
  const known: Chosen[] = domains.data ?? (value ? [value] : [])
  return (
    <Select
      label="Domain"
      value={value && String(value.id)}
      onChange={(chosen) => onChange(known.find(({ id }) => String(id) === chosen) ?? null)}
      data={known.map(({ id, name }) => ({ value: String(id), label: name }))}
      nothingFoundMessage="No matching domains"
      error={domains.error?.message}
      openOnFocus={false}
      searchable
      {...rest}
    />
  )
}
