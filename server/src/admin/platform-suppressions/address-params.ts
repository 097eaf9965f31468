import Type from 'typebox'
import { SuppressedAddress } from '../../core/mail/suppressions/wire.ts'

export const AddressParams = Type.Object({ address: SuppressedAddress }, { additionalProperties: false })
