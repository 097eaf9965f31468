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

export const RoutingMatch = Type.Object(
  {
    address: Type.String({ description: 'The specified address, with the domain as A-labels (xn--).' }),
    outcome: oneOf(outcomes, {
      description:
        'The action of the matching route: `endpoint`, `forward`, `reject` or `drop`. Permanently rejected: `no_route`, ' +
        '`no_domain`, `held_elsewhere`. Temporarily rejected: `contested`, `project_locked`, `endpoint_inactive`, ' +
        '`domain_not_verified`, `provider_forwards_nothing`, `forward_not_confirmed`. Customers get `domain_not_verified` for ' +
        'every unverified domain, whether or not other projects claim or have held the name.',
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
