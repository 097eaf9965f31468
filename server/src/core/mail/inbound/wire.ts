import Type from 'typebox'
import { Route } from '../../control/routes/wire.ts'
import { nullable, oneOf } from '../../shared/wire.ts'

const outcomes = [
  'endpoint',
  'forward',
  'reject',
  'drop',
  'no_route',
  'no_domain',
  'held_elsewhere',
  'contested',
  'project_locked',
  'endpoint_inactive',
  'domain_not_verified',
  'provider_forwards_nothing',
  'forward_not_confirmed',
] as const

/** How mail for an address is routed. */
export const RoutingMatch = Type.Object(
  {
    address: Type.String({ description: 'The address as given, with the domain in its xn-- labels.' }),
    outcome: oneOf(outcomes, {
      description:
        'The action of the matching route: `endpoint`, `forward`, `reject` or `drop`. Permanently refused: `no_route`, ' +
        '`no_domain`, `held_elsewhere`. Temporarily refused: `contested`, `project_locked`, `endpoint_inactive`, ' +
        '`domain_not_verified`, `provider_forwards_nothing`, `forward_not_confirmed`. Customers get `domain_not_verified` for ' +
        'every domain that is not verified, whether or not other projects claim or held the name.',
    }),
    route: nullable(Route),
    domain: nullable(
      Type.Object(
        {
          id: Type.Integer(),
          name: Type.String(),
          status: oneOf(['pending', 'verified', 'failed']),
        },
        { additionalProperties: false },
      ),
    ),
    explanation: Type.String({ description: 'The outcome as a sentence.' }),
  },
  { title: 'RoutingMatch', additionalProperties: false },
)

export const MatchQuery = {
  address: Type.String({
    minLength: 1,
    maxLength: 254,
    description: 'A full address, such as support@example.com.',
    examples: ['support@example.com'],
  }),
}
