import { TextInput, type TextInputProps } from '@mantine/core'

export function DomainNameField({
  value,
  onChange,
  ...props
}: { value: string; onChange: (name: string) => void } & Omit<TextInputProps, 'value' | 'onChange'>) {
  return (
    <TextInput
      label="Name"
      placeholder="mail.example.com"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      maxLength={253}
      autoComplete="off"
      spellCheck={false}
      required
      data-autofocus
      {...props}
    />
  )
}

/** The name as in DNS (IDNA). The server rejects names that cannot be converted. */
export function dnsNameOf(name: string): string {
  const trimmed = name.trim().replace(/\.$/, '')
  return /[/\\@:?#%\s]/.test(trimmed) ? trimmed : (URL.parse(`http://${trimmed}`)?.hostname ?? trimmed)
}
