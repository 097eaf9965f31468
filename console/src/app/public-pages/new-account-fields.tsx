import { TextInput } from '@mantine/core'
import type { ReactNode } from 'react'
import { fieldError } from '../../signin/form-errors.tsx'
import { PasswordField } from '../../signin/password-field.tsx'

export interface NewAccount {
  name: string
  password: string
}

/** What a person chooses for a new account. */
export function NewAccountFields({
  value,
  onChange,
  error,
  children,
}: {
  value: NewAccount
  onChange: (value: NewAccount) => void
  error: Error | null
  /** The field for the address. */
  children: ReactNode
}) {
  return (
    <>
      <TextInput
        label="Name"
        value={value.name}
        onChange={(event) => onChange({ ...value, name: event.currentTarget.value })}
        error={fieldError(error, 'name', 'The name')}
        autoComplete="name"
        maxLength={100}
        required
        autoFocus
      />
      {children}
      <PasswordField
        label="Password"
        description="At least 12 characters."
        value={value.password}
        onChange={(event) => onChange({ ...value, password: event.currentTarget.value })}
        error={fieldError(error, 'password', 'The password')}
        autoComplete="new-password"
        minLength={12}
        maxLength={128}
        required
      />
    </>
  )
}
