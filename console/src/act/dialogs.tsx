import { createContext, type ReactNode, useContext, useState } from 'react'

type Open = (dialog: (close: () => void) => ReactNode) => void

const OpenContext = createContext<Open | undefined>(undefined)

/** Opens the dialog of a change. */
export function useOpenDialog(): Open {
  const open = useContext(OpenContext)
  if (!open) throw new Error('useOpenDialog must be used inside <Dialogs>')
  return open
}

export function Dialogs({ children }: { children: ReactNode }) {
  const [dialog, setDialog] = useState<ReactNode>()
  // One at a time: an open dialog may contain a form, or a secret that is shown once.
  const open: Open = (render) => setDialog((opened) => opened ?? render(() => setDialog(undefined)))
  return (
    <OpenContext value={open}>
      {children}
      {dialog}
    </OpenContext>
  )
}
