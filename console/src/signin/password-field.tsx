import { PasswordInput, type PasswordInputProps } from '@mantine/core'

/** Also tells assistive technology that the password is invalid. Mantine does so for other fields only. */
export const PasswordField = (props: PasswordInputProps) => (
  <PasswordInput {...props} aria-invalid={props.error ? true : undefined} />
)
