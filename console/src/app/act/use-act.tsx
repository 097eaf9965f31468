import { useOpenDialog } from '../../act/dialogs.tsx'
import type { OperationId } from '../../api/client.ts'
import type { Act } from './act.ts'
import { ActDialog } from './act-dialog.tsx'

/** `const start = useAct()`, then `start({ operation: 'customer.api-keys.delete', … })`. */
export function useAct() {
  const open = useOpenDialog()
  return <Id extends OperationId, R, Form extends object>(act: Act<Id, R, Form>): void =>
    open((close) => <ActDialog act={act} close={close} />)
}
