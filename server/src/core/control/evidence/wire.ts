import Type from 'typebox'
import { MessageId, nullable, oneOf, Timestamp } from '../../shared/wire.ts'

export const maxMessages = 100
export const maxRangeDays = 366

const range = {
  from: { ...Timestamp, description: 'The start of the range.' },
  to: { ...Timestamp, description: 'The end of the range. Not later than the request.' },
}

export const EvidenceRequest = {
  from: range.from,
  to: { ...Timestamp, description: 'The end of the range. A time in the future stands for now.' },
  message_ids: Type.Optional(
    Type.Array(MessageId, {
      maxItems: maxMessages,
      uniqueItems: true,
      description: 'The messages whose timelines are included. They need not be from the range.',
    }),
  ),
}

export const Evidence = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    requested_by: Type.Object(
      { id: Type.Integer(), email: nullable(Type.String()) },
      { additionalProperties: false },
    ),
    ...range,
    message_ids: Type.Array(MessageId),
    status: oneOf(['queued', 'building', 'signing', 'ready', 'failed']),
    progress: Type.Integer({ minimum: 0, maximum: 100, description: 'Percent.' }),
    problem: nullable(Type.String({ description: 'Why the file cannot be made. Only for `failed`.' })),
    lines: Type.Integer({ description: 'The lines that are written.' }),
    size_bytes: Type.Integer(),
    file: nullable(Type.String({ description: 'The path of the file. Null until it is `ready`.' })),
    created_at: Timestamp,
    updated_at: Timestamp,
    expires_at: { ...Timestamp, description: 'When the file is deleted.' },
  },
  { title: 'Evidence', additionalProperties: false },
)
