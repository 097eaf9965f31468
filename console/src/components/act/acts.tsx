import { createContext, type ReactNode, useContext, useState } from 'react'
import type { MutationId } from '../../api/client.ts'
import type { Act } from './act.ts'
import { ActDialog } from './act-dialog.tsx'

type Start = <Id extends MutationId, R, Form extends object>(act: Act<Id, R, Form>) => void

const StartContext = createContext<Start | undefined>(undefined)

/** `const start = useAct()`, then `start({ operation: 'projects.edit', … })`. */
export function useAct(): Start {
  const start = useContext(StartContext)
  if (!start) throw new Error('useAct must be used inside <Acts>')
  return start
}

export function Acts({ children }: { children: ReactNode }) {
  const [dialog, setDialog] = useState<ReactNode>()
  // One at a time: an open dialog may contain a form, or a secret that is shown once.
  const start: Start = (act) =>
    setDialog((open) => open ?? <ActDialog act={act} close={() => setDialog(undefined)} />)
  return (
    <StartContext value={start}>
      {children}
      {dialog}
    </StartContext>
  )
}
