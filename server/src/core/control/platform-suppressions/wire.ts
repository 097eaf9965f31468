import Type from 'typebox'
import { Timestamp } from '../../shared/wire.ts'

/** An address to which no project can send. */
export const PlatformSuppression = Type.Object(
  {
    address: Type.String({ description: 'In lower case.' }),
    reason: Type.String({ description: 'Only administrators see it.' }),
    created_at: Timestamp,
  },
  { title: 'PlatformSuppression', additionalProperties: false },
)
