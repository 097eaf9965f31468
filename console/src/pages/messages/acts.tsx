import type { Answer } from '../../api/client.ts'
import type { Message, Suppression } from '../../api/operations.gen.ts'
import { type Act, nothing, nothingToFillIn } from '../../components/act/act.ts'

/** As long as it waits for its time. */
export const cancelMessage = (seen: Answer<Message>): Act<'messages.cancel', Message, object> => ({
  operation: 'messages.cancel',
  path: { project_id: seen.data.project_id, id: seen.data.id },
  title: `Do not send ${seen.data.subject || 'this message'}`,
  // Not "Cancel", which closes the dialog.
  button: 'Do not send it',
  isDangerous: true,
  base: { seen },
  ...nothingToFillIn,
})

/** Also where the recipient complained, which the customer cannot delete. */
export const deleteSuppression = (
  projectId: number,
  { address }: Suppression,
): Act<'suppressions.delete', undefined, object> => ({
  operation: 'suppressions.delete',
  path: { project_id: projectId, address },
  title: `Delete the suppression of ${address}`,
  button: 'Delete suppression',
  isDangerous: true,
  base: nothing,
  ...nothingToFillIn,
})
