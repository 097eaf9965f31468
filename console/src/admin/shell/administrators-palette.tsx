import type { ClipboardEvent } from 'react'
import type { PaletteProps } from '../../frame/palette.tsx'
import { PaletteDialog } from '../../frame/palette-dialog.tsx'
import { useChoices, useTrace } from './palette-choices.ts'

export default function AdministratorsPalette(props: PaletteProps) {
  const trace = useTrace()
  // A header or a report does not fit into the field.
  const paste = (event: ClipboardEvent) => {
    const text = event.clipboardData.getData('text')
    if (!text.trim().includes('\n')) return
    event.preventDefault()
    props.close()
    trace(text)
  }
  return (
    <PaletteDialog
      {...props}
      {...useChoices(props.typed)}
      placeholder="Search projects, domains, addresses, users and commands"
      onPaste={paste}
    />
  )
}
