import { Input, TextInput } from '@mantine/core'
import { useId } from 'react'
import classes from './address-field.module.css'

/** An address in a fixed domain: only the local part is typed. */
export function AddressField({
  label,
  isLabelHidden = false,
  domain,
  local,
  onChange,
  isFirst = false,
}: {
  label: string
  isLabelHidden?: boolean
  domain: string
  local: string
  onChange: (local: string) => void
  isFirst?: boolean
}) {
  const id = useId()
  // A pasted full address is also accepted.
  const change = (text: string) =>
    onChange(text.toLowerCase().endsWith(`@${domain}`) ? text.slice(0, -domain.length - 1) : text)
  return (
    <Input.Wrapper label={isLabelHidden ? undefined : label} id={id} required>
      <div className={classes.address}>
        <TextInput
          id={id}
          aria-label={isLabelHidden ? label : undefined}
          value={local}
          onChange={(event) => change(event.currentTarget.value)}
          autoComplete="off"
          spellCheck={false}
          required
          data-autofocus={isFirst || undefined}
        />
        <span>@{domain}</span>
      </div>
    </Input.Wrapper>
  )
}
