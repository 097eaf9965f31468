import { Select, type SelectProps } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'

export interface ChosenDomain {
  id: number
  name: string
}

/** One of a project's domains. */
export function DomainSelect<Domain extends ChosenDomain>({
  domains,
  value,
  onChange,
  ...rest
}: {
  /** All domains of the project. */
  domains: UseQueryResult<ChosenDomain[]>
  value: Domain | null
  onChange: (domain: ChosenDomain | null) => void
} & Omit<SelectProps, 'value' | 'onChange' | 'data'>) {
  // Until the list has loaded, the selected domain is the only option.
  const known: ChosenDomain[] = domains.data ?? (value ? [value] : [])
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

/** The domain that an API key is bound to. */
export function KeyDomainSelect({
  domains,
  value,
  onChange,
}: {
  domains: UseQueryResult<ChosenDomain[]>
  value: number | null
  onChange: (id: number | null) => void
}) {
  return (
    <DomainSelect
      domains={domains}
      description="Restricts the key to one domain"
      placeholder="All domains"
      value={value === null ? null : { id: value, name: `domain ${value}` }}
      onChange={(domain) => onChange(domain?.id ?? null)}
      clearable
    />
  )
}
