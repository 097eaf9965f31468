import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useState } from 'react'
import type { User } from '../../api/operations.gen.ts'
import { useAnswer, useOne } from '../../api/queries.ts'

/** Selects a user by part of the address or name. */
export function UserSelect({
  label,
  description,
  value,
  onChange,
  isFilter = false,
  w,
}: {
  label: string
  description?: string
  value: number | null
  onChange: (id: number | null) => void
  /** For the audit log's filter: the selection can be empty, and the command line is offered as an actor. */
  isFilter?: boolean
  w?: number
}) {
  const [typed, setTyped] = useState('')
  const [q] = useDebouncedValue(typed, 150)
  const found = useAnswer('users.list', { query: { limit: 10, ...(q && { q }) } })
  const chosen = useOne('users.show', { id: value ?? 0 }, { isEnabled: value !== null && value !== 0 })
  const users = new Map((found.data?.data ?? []).map((user) => [user.id, user]))
  if (chosen.data) users.set(chosen.data.data.id, chosen.data.data)
  const labelOf = ({ name, email }: User) => (name ? `${name} <${email}>` : email)
  return (
    <Select
      label={label}
      description={description}
      placeholder={isFilter ? 'Anyone' : 'Part of an address or a name'}
      value={value === null ? null : String(value)}
      onChange={(id) => onChange(id === null ? null : Number(id))}
      searchValue={typed}
      onSearchChange={setTyped}
      data={[
        ...(isFilter ? [{ value: '0', label: 'Command line' }] : []),
        ...[...users.values()].map((user) => ({ value: String(user.id), label: labelOf(user) })),
      ]}
      // The server has already filtered.
      filter={({ options }) => options}
      nothingFoundMessage="No matching users"
      searchable
      required={!isFilter}
      clearable={isFilter}
      w={w}
    />
  )
}
