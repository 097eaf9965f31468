import { Input, TextInput } from '@mantine/core'
import { useId } from 'react'
import classes from './address-field.module.css'

/** An address under a domain that is settled: only what stands before the @ is written. */
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
  // Whoever pastes the whole address means the same.
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
