import Type from 'typebox'
import { MessageId } from '../../core/shared/wire.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'

export const ProjectMessageParams = Type.Object(
  { ...ProjectParams.properties, id: MessageId },
  { additionalProperties: false },
)
