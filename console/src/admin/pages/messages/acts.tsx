import type { Answer } from '../../../api/client.ts'
import type { Message } from '../../../api/operations.gen.ts'
import { type Act, nothingToFillIn } from '../../act/act.ts'

/** Only a scheduled message can be canceled. */
export const cancelMessage = (loaded: Answer<Message>): Act<'messages.cancel', Message, object> => ({
  operation: 'messages.cancel',
  path: { project_id: loaded.data.project_id, id: loaded.data.id },
  title: `Cancel ${loaded.data.subject || 'this message'}`,
  // Not "Cancel", which closes the dialog.
  button: 'Cancel message',
  success: 'Message canceled',
  isDangerous: true,
  base: { loaded },
  ...nothingToFillIn,
})
