import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

/**
 * What happens to inbound mail. A route is for one address of a domain (an address route) or for all the others
 * (the domain's catch-all); an address route wins. One that is switched off is passed over as if it were not
 * there. Mail that no route takes is refused.
 */
export const routeMatches = ['address', 'catch_all'] as const
export const routeActions = ['endpoint', 'forward', 'reject', 'drop'] as const

const Reference = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
const maxAddressLength = 254

/** Editable, and always given as a whole. */
export const RouteFields = {
  domain_id: Type.Integer({ ...Reference, description: 'The domain whose mail the route applies to.' }),
  match: oneOf(routeMatches, {
    description:
      '`address`: one address of the domain. `catch_all`: every address without a route of its own.',
  }),
  address: nullable(
    Type.String({
      maxLength: maxAddressLength,
      description: 'With `address`: a full address under the name of the domain. Otherwise null.',
    }),
  ),
  action: oneOf(routeActions, {
    description:
      '`endpoint`: delivered to an endpoint. `forward`: forwarded. `reject`: rejected, so that the sender gets a bounce. `drop`: accepted and discarded.',
  }),
  endpoint_id: nullable(
    Type.Integer({
      ...Reference,
      description: 'With `endpoint`: an endpoint of the project. Otherwise null.',
    }),
  ),
  forward_to: nullable(
    Type.String({
      maxLength: maxAddressLength,
      description:
        "With `forward`: an address outside the route's own domain. Postern mails it a link and forwards nothing until it confirms (`forward_confirmed_at`). Otherwise null.",
    }),
  ),
  is_active: Type.Boolean({ description: 'Whether the route receives mail. An inactive route is skipped.' }),
}

/** A new one is active unless told otherwise. */
export const NewRouteFields = { ...RouteFields, is_active: Type.Optional(RouteFields.is_active) }

const routeExample = { domain_id: 1, match: 'address', address: 'support@example.com' }
export const routeExamples = {
  create: { ...routeExample, action: 'endpoint', endpoint_id: 1, forward_to: null },
  edit: {
    ...routeExample,
    action: 'forward',
    endpoint_id: null,
    forward_to: 'helpdesk@example.net',
    is_active: true,
  },
}

/** A route as callers see it. */
export const Route = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    domain_id: Type.Integer(),
    match: oneOf(routeMatches),
    address: nullable(Type.String({ description: 'In lower case.' })),
    action: oneOf(routeActions),
    endpoint_id: nullable(Type.Integer()),
    forward_to: nullable(Type.String()),
    forward_confirmed_at: nullable(
      Type.String({
        format: 'date-time',
        description:
          'When `forward_to` confirmed that it wants the mail, for any route of the project. Null until then, and again after `forward_to` is changed: nothing is forwarded, and senders get a temporary failure.',
      }),
    ),
    is_active: Type.Boolean(),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Route', additionalProperties: false },
)

const ConfigSchema = Type.Object(RouteFields)
export type RouteConfig = Static<typeof ConfigSchema>
