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
import { type Act, nothingToFillIn, type Step } from '../../act/act.ts'

const pathOf = ({ project_id, id }: Route) => ({ project_id, id })

const baseOf = (loaded: Answer<Route>) => ({
  loaded,
  refetch: () => callForVersion('routing.show', { path: pathOf(loaded.data) }),
})

const fieldsOf = <R,>(projectId: number): Step<R, RouteForm>[] => [
  {
    title: 'Route',
    fields: ({ form, set }) => <Fields projectId={projectId} form={form} set={set} />,
  },
]

export const createRoute = (
  projectId: number,
  domains: readonly ChosenDomain[],
): Act<'routing.create', undefined, RouteForm> => ({
  operation: 'routing.create',
  path: { project_id: projectId },
  title: 'New route',
  button: 'Create route',
  success: 'Route created',
  base: nothing,
  form: () => newRoute(domains),
  steps: fieldsOf(projectId),
  body: routeBodyOf,
})

export const editRoute = (
  loaded: Answer<Route>,
  nameOf: (domainId: number) => string,
): Act<'routing.edit', Route, RouteForm> => ({
  operation: 'routing.edit',
  path: pathOf(loaded.data),
  title: `Edit route for ${labelOf(loaded.data, nameOf)}`,
  button: 'Save route',
  success: 'Route saved',
  base: baseOf(loaded),
  form: (route) => routeFormOf(route, nameOf),
  steps: fieldsOf(loaded.data.project_id),
  body: routeBodyOf,
})

export const deleteRoute = (
  loaded: Answer<Route>,
  nameOf: (domainId: number) => string,
): Act<'routing.delete', Route, object> => ({
  operation: 'routing.delete',
  path: pathOf(loaded.data),
  title: `Delete route for ${labelOf(loaded.data, nameOf)}`,
  button: 'Delete route',
  success: 'Route deleted',
  isDangerous: true,
  base: baseOf(loaded),
  ...nothingToFillIn,
})

export const requestConfirmation = (
  { data }: Answer<Route>,
  nameOf: (domainId: number) => string,
): Act<'routing.request-confirmation', undefined, object> => ({
  operation: 'routing.request-confirmation',
  path: pathOf(data),
  title: `Resend the confirmation link for ${labelOf(data, nameOf)} to ${data.forward_to}`,
  button: 'Resend link',
  success: 'Confirmation link resent',
  base: nothing,
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
  const domains = useAll('domains.list', { project_id: projectId })
  const endpoints = useAll('endpoints.list', { project_id: projectId })
  return <RouteFields domains={domains} endpoints={endpoints} {...props} />
}
