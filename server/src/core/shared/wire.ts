import Type, { type TSchema } from 'typebox'

/** Wire formats shared by many resources. */
export const Timestamp = Type.String({
  format: 'date-time',
  description: 'RFC 3339, UTC, with milliseconds.',
  examples: ['2026-11-14T09:30:00.000Z'],
})

/** Absent values are null. Keys are never omitted. */
export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()])

export const oneOf = <Values extends string[]>(values: readonly [...Values], options: object = {}) =>
  Type.Enum(values, { type: 'string', ...options })

export const MessageId = Type.String({
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$',
  description: 'A version 7 UUID.',
  examples: ['01939f0e-7b1a-7c3e-9d2f-0123456789ab'],
})

export const UnreachableCells = Type.Array(Type.String(), {
  description: 'The names of the mail databases that did not answer. Their mail is missing in `data`.',
})
