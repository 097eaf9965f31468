import { nothing } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { Route } from '../../../api/operations.gen.ts'
import { useAll } from '../../../api/queries.ts'
import type { ChosenDomain } from '../../../resources/domains/domain-select.tsx'
import {
  labelOf,
  newRoute,
  RouteFields,
  type RouteForm,
  routeBodyOf,
  routeFormOf,
} from '../../../resources/routing/route-fields.tsx'
import { type Act, nothingToFillIn } from '../../act/act.ts'

type NameOf = (domainId: number) => string

const pathOf = ({ project_id, id }: Route) => ({ project_id, id })

const baseOf = (loaded: Answer<Route>) => ({
  loaded,
  refetch: () => callForVersion('customer.routing.show', { path: pathOf(loaded.data) }),
})

export const createRoute = (
  projectId: number,
  domains: readonly ChosenDomain[],
): Act<'customer.routing.create', undefined, RouteForm> => ({
  operation: 'customer.routing.create',
  path: { project_id: projectId },
  title: 'New route',
  button: 'Create route',
  success: 'Route created',
  base: nothing,
  form: () => newRoute(domains),
  fields: ({ form, set }) => <Fields projectId={projectId} form={form} set={set} />,
  body: routeBodyOf,
})

export const editRoute = (
  loaded: Answer<Route>,
  nameOf: NameOf,
): Act<'customer.routing.edit', Route, RouteForm> => ({
  operation: 'customer.routing.edit',
  path: pathOf(loaded.data),
  title: `Edit route for ${labelOf(loaded.data, nameOf)}`,
  button: 'Save route',
  success: 'Route saved',
  base: baseOf(loaded),
  form: (route) => routeFormOf(route, nameOf),
  fields: ({ form, set }) => <Fields projectId={loaded.data.project_id} form={form} set={set} />,
  body: routeBodyOf,
})

export const deleteRoute = (
  loaded: Answer<Route>,
  nameOf: NameOf,
): Act<'customer.routing.delete', Route, object> => ({
  operation: 'customer.routing.delete',
  path: pathOf(loaded.data),
  title: `Delete route for ${labelOf(loaded.data, nameOf)}`,
  button: 'Delete route',
  success: 'Route deleted',
  isDangerous: true,
  base: baseOf(loaded),
  consequences:
    loaded.data.match === 'address'
      ? 'Mail for the address is handled by the domain’s catch-all route, or rejected if there is none.'
      : 'Mail for addresses without a route of their own is rejected.',
  ...nothingToFillIn,
})

export const requestConfirmation = (
  { data }: Answer<Route>,
  nameOf: NameOf,
): Act<'customer.routing.request-confirmation', undefined, object> => ({
  operation: 'customer.routing.request-confirmation',
  path: pathOf(data),
  title: `Resend the confirmation link for ${labelOf(data, nameOf)}`,
  button: 'Resend link',
  success: 'Confirmation link resent',
  base: nothing,
  consequences: `${data.forward_to} gets an email with a new link. Mail is forwarded once the link has been opened and confirmed.`,
  ...nothingToFillIn,
})

function Fields({
  projectId,
  ...props
}: {
  projectId: number
  form: RouteForm
  set: (part: Partial<RouteForm>) => void
}) {
  const domains = useAll('customer.domains.list', { project_id: projectId })
  const endpoints = useAll('customer.endpoints.list', { project_id: projectId })
  return <RouteFields domains={domains} endpoints={endpoints} {...props} />
}
