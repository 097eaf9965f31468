import Type from 'typebox'
import { nullable, oneOf } from '../../shared/wire.ts'

export const kinds = ['project', 'domain', 'route', 'user'] as const

export const SearchResult = Type.Object(
  {
    type: oneOf(kinds),
    id: Type.Integer(),
    project_id: nullable(Type.Integer({ description: 'Null for a user.' })),
    project_name: nullable(Type.String()),
    label: Type.String({
      description:
        'The name of a project or domain, the address of a route, or the name and address of a user.',
    }),
  },
  { title: 'SearchResult', additionalProperties: false },
)

export const SearchQuery = {
  q: Type.String({
    minLength: 1,
    maxLength: 100,
    pattern: '\\S',
    description: 'Part of a name or address (case-insensitive), or a project id.',
    examples: ['acme'],
  }),
}
