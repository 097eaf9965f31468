import Type from 'typebox'
import { BulkId } from '../../core/control/bulk/wire.ts'

export const BulkParams = Type.Object({ id: BulkId }, { additionalProperties: false })
