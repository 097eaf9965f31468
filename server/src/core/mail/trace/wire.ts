import Type from 'typebox'
import { MessageId, nullable, oneOf, Timestamp, UnreachableCells } from '../../shared/wire.ts'
import { recipientStatuses } from '../messages/wire.ts'

export const traceMatches = ['return_path', 'message_id', 'queue_id', 'recipient'] as const

export const TracedMessage = Type.Object(
  {
    message_id: MessageId,
    project_id: Type.Integer(),
    project_name: nullable(Type.String({ description: 'Null if the project was deleted.' })),
    recipient: nullable(
      Type.Object(
        {
          no: Type.Integer({ description: 'The position of the recipient in the message, from 0.' }),
          address: Type.String(),
          status: oneOf(recipientStatuses),
        },
        {
          additionalProperties: false,
          description: 'Null if the reference does not name one of several recipients.',
        },
      ),
    ),
    created_at: Timestamp,
    matched_by: oneOf(traceMatches, {
      description:
        '`return_path`: a signed return path or the `X-Postern-Ref` header. `message_id`: the id in a Message-ID or an envelope id. `queue_id`: the id of the MTA or of Amazon SES. `recipient`: the address, and the day if the text contains one.',
    }),
    is_certain: Type.Boolean({
      description: 'True for a signed reference. Everything else can be written by anyone, and is a guess.',
    }),
  },
  { title: 'TracedMessage', additionalProperties: false },
)

export const Trace = Type.Object(
  { data: Type.Array(TracedMessage), unreachable_cells: UnreachableCells },
  { title: 'Trace', additionalProperties: false },
)
