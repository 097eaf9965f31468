import Type, { type TSchema } from 'typebox'

/** Shapes that many resources share, as they stand on the wire. */
export const Timestamp = Type.String({
  format: 'date-time',
  description: 'RFC 3339, UTC, with milliseconds.',
  examples: ['2026-11-14T09:30:00.000Z'],
})

/** Absent values are null, never a missing key. */
export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()])

export const oneOf = <Values extends string[]>(values: readonly [...Values], options: object = {}) =>
  Type.Enum(values, { type: 'string', ...options })
