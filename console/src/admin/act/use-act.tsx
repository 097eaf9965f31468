import { useOpenDialog } from '../../act/dialogs.tsx'
import type { Act } from './act.ts'
import { ActDialog } from './act-dialog.tsx'
import type { MutationId } from './mutation.ts'

type Start = <Id extends MutationId, R, Form extends object>(act: Act<Id, R, Form>) => void

/** `const start = useAct()`, then `start({ operation: 'projects.edit', … })`. */
export function useAct(): Start {
  const open = useOpenDialog()
  return (act) => open((close) => <ActDialog act={act} close={close} />)
}
