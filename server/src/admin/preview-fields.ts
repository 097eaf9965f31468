import Type from 'typebox'

/** The fields of every preview, also of the samples of a bulk action. */
export const Changes = Type.Array(
  Type.Object(
    {
      resource: Type.String(),
      id: Type.Union([Type.Integer(), Type.String(), Type.Null()], {
        description: 'Null for a resource that does not exist yet.',
      }),
      field: Type.String(),
      before: Type.Unknown(),
      after: Type.Unknown({ description: 'Also null for values that are known only after the change.' }),
    },
    { additionalProperties: false },
  ),
)

export const Effects = Type.Array(Type.String(), {
  description: 'Consequences of the change, as sentences.',
})

export const Warnings = Type.Array(Type.String(), {
  description: 'Points to consider before making the change, as sentences.',
})
