import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

/**
 * Handling of inbound mail. A route applies to one address in a domain (an address route) or to all other addresses (the
 * domain's catch-all route). Address routes take precedence. Inactive routes are ignored. Mail without a matching route
 * is rejected.
 */
export const routeMatches = ['address', 'catch_all'] as const
export const routeActions = ['endpoint', 'forward', 'reject', 'drop'] as const

const Reference = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
const maxAddressLength = 254

/** The editable fields, always sent as a whole. */
export const RouteFields = {
  domain_id: Type.Integer({ ...Reference, description: 'The domain whose mail the route applies to.' }),
  match: oneOf(routeMatches, {
    description:
      '`address`: one address of the domain. `catch_all`: every address without a route of its own.',
  }),
  address: nullable(
    Type.String({
      maxLength: maxAddressLength,
      description: "If `match` is `address`: a full address under the domain's name. Otherwise null.",
    }),
  ),
  action: oneOf(routeActions, {
    description:
      '`endpoint`: delivered to an endpoint. `forward`: forwarded. `reject`: rejected, so that the sender gets a bounce. `drop`: accepted and discarded.',
  }),
  endpoint_id: nullable(
    Type.Integer({
      ...Reference,
      description: "If `action` is `endpoint`: one of the project's endpoints. Otherwise null.",
    }),
  ),
  forward_to: nullable(
    Type.String({
      maxLength: maxAddressLength,
      description:
        "If `action` is `forward`: an address outside the route's own domain. Postern emails a confirmation link to the address and forwards nothing until the recipient confirms (`forward_confirmed_at`). Otherwise null.",
    }),
  ),
  is_active: Type.Boolean({ description: 'Whether the route receives mail. An inactive route is skipped.' }),
}

/** A new route is active by default. */
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

/** A route as the API returns it. */
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
          "When the recipient at `forward_to` confirmed, for any of the project's routes. Null until then, and again after `forward_to` is changed. While it is null, nothing is forwarded, and senders get a temporary failure.",
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
